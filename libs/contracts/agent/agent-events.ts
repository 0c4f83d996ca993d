import { z } from 'zod';
import { Cause, event } from '../log/stored-event.js';
import { AgentDefinition, AgentOverrides, AgentResult, TreeLimits } from './agent-definition.js';

/**
 * Principal, agent or rule that caused a change: `key/<id>`, `local`, `agent/<id>`,
 * `configuration`, `runtime`.
 */
const Actor = z.string().min(1).max(200);
const change = {
  agentId: z.string(),
  actor: Actor,
  /** Why, for a person. Null if the actor gave none. */
  reason: z.string().max(2_000).nullable(),
  /** Reason of the runtime or the configuration, in place of `reason`. */
  cause: Cause.optional(),
  at: z.iso.datetime(),
};

/** An agent exists from here on. Its id is never used again in the workspace. */
export const AgentSpawned = event('AgentSpawned', {
  ...change,
  definition: AgentDefinition,
  origin: z.enum(['configuration', 'request']),
  /** Null for the root of a tree. */
  parentId: z.string().nullable(),
  /** Root of the tree; the agent itself for a root. */
  rootId: z.string(),
  /** Number of ancestors. */
  depth: z.int().nonnegative(),
});
/** The tree admitted the agent: it may take turns and tasks. */
export const AgentReady = event('AgentReady', change);
/** The definition of a configured agent changed with the configuration. */
export const AgentRedefined = event('AgentRedefined', { ...change, definition: AgentDefinition });
/** Fields of the definition are set at run time. They replace all that were set so before. */
export const AgentOverridesSet = event('AgentOverridesSet', { ...change, overrides: AgentOverrides });
/** Turns stop at the next step boundary until the agent is resumed. New turns and tasks wait. */
export const AgentPaused = event('AgentPaused', {
  ...change,
  /** Ancestor whose pause reached the agent; absent for a pause of its own. */
  with: z.string().optional(),
});
/** Ends a pause or an error. */
export const AgentResumed = event('AgentResumed', change);
/**
 * The agent is held for a time, because a turn of it lost too many processes, or the trial turn
 * did. Absent fields: an older event.
 */
export const AgentFailed = event('AgentFailed', {
  ...change,
  code: z.string(),
  /** Turn that failed. */
  sessionId: z.uuid().optional(),
  turnId: z.uuid().optional(),
  /** Number of failures in a row, of which all but the first are trials. */
  failures: z.int().positive().optional(),
  /** Time from which one waiting turn is tried. */
  retryAt: z.iso.datetime().optional(),
});
/** One waiting turn of an agent in error is tried. The others wait for its end. */
export const AgentTrialStarted = event('AgentTrialStarted', {
  ...change,
  sessionId: z.uuid(),
  turnId: z.uuid(),
});
/** No heartbeat of a working agent for 60 s. */
export const AgentUnresponsive = event('AgentUnresponsive', { ...change, lastSeenAt: z.iso.datetime() });
/** The first heartbeat after `AgentUnresponsive`. */
export const AgentResponsive = event('AgentResponsive', change);
/** A rule stopped the agent's turn, such as a hand-over that repeats. */
export const AgentBlocked = event('AgentBlocked', {
  ...change,
  code: z.string(),
  sessionId: z.uuid(),
  turnId: z.uuid(),
  /** Agents of a hand-over cycle, in order; empty for other rules. */
  chain: z.array(z.string()),
});
/** Final. Its history stays readable. */
export const AgentTerminated = event('AgentTerminated', {
  ...change,
  /** Work that was complete before the end. Null if none was. */
  result: AgentResult.nullable(),
});

/** The first event of an `agent-tree-<id>` stream. */
export const TreeOpened = event('TreeOpened', {
  rootId: z.string(),
  limits: TreeLimits,
  at: z.iso.datetime(),
});
const member = { rootId: z.string(), agentId: z.string(), at: z.iso.datetime() };
/** The agent has a place in the tree. Committed with its `AgentReady`. */
export const TreeMemberAdmitted = event('TreeMemberAdmitted', {
  ...member,
  parentId: z.string().nullable(),
  depth: z.int().nonnegative(),
});
/** The tree is full, and the agent waits in the order of these events. */
export const TreeMemberQueued = event('TreeMemberQueued', {
  ...member,
  parentId: z.string(),
  depth: z.int().nonnegative(),
  /** Limit that was reached. */
  limit: z.enum(['children', 'size']),
});
/** The place or the waiting position of the agent is free. Committed with its end. */
export const TreeMemberLeft = event('TreeMemberLeft', member);

/** Every event of an `agent-<id>` stream. */
export const AgentEvent = z.discriminatedUnion('type', [
  AgentSpawned,
  AgentReady,
  AgentRedefined,
  AgentOverridesSet,
  AgentPaused,
  AgentResumed,
  AgentFailed,
  AgentTrialStarted,
  AgentUnresponsive,
  AgentResponsive,
  AgentBlocked,
  AgentTerminated,
]);
export type AgentEvent = z.infer<typeof AgentEvent>;

/** Every event of an `agent-tree-<id>` stream. */
export const AgentTreeEvent = z.discriminatedUnion('type', [
  TreeOpened,
  TreeMemberAdmitted,
  TreeMemberQueued,
  TreeMemberLeft,
]);
export type AgentTreeEvent = z.infer<typeof AgentTreeEvent>;

/**
 * Ids of streams take a UUID that is derived from the workspace and the agent's id
 * (`agentUuidOf`).
 */
export const agentStream = (agentUuid: string): string => `agent-${agentUuid}`;
export const agentTreeStream = (rootUuid: string): string => `agent-tree-${rootUuid}`;
export const agentInboxStream = (agentUuid: string): string => `agent-inbox-${agentUuid}`;
export const agentTopicStream = (topicUuid: string): string => `agent-topic-${topicUuid}`;

/** Subject that tells agent processes that an agent's definition or state changed. */
export const AGENT_CHANGE_SUBJECT = 'hint.agent.agents';
