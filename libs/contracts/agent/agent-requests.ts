import { z } from 'zod';
import { asOfReply, asOfRequest } from '../log/as-of.js';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';
import {
  AgentBudget,
  AgentCallLimits,
  AgentChanges,
  AgentPhase,
  AgentResult,
  AgentSpec,
  AgentState,
} from './agent-definition.js';
import { AgentId } from './agent-id.js';
import { Caller, IdempotencyKey } from './requests.js';

/** Principal that asks for a change of an agent. */
export const AgentActor = z.strictObject({
  caller: Caller,
  role: z.enum(['viewer', 'member', 'operator', 'admin']),
  /** Agent whose credential or tool call this is; null for people and programs. */
  agentId: z.string().nullable(),
});
export type AgentActor = z.infer<typeof AgentActor>;

/** An agent as the API lists it. Configured and spawned agents have the same form. */
export const AgentView = z.object({
  id: z.string(),
  name: z.string(),
  role: z.string().nullable(),
  provider: z.string().describe('Name of its provider, configured or connected.'),
  model: z.string(),
  contextTokens: z
    .int()
    .positive()
    .optional()
    .describe('Maximum size of a context: by the window of its model, or by `[memory] context_tokens`.'),
  inputs: z
    .array(z.enum(['text', 'image', 'document']))
    .optional()
    .describe(
      'Formats that its model takes. An image is refused by any other model, and a PDF becomes text.',
    ),
  tools: z.array(z.string()).describe('Names of the tools that the agent may call.'),
  capabilities: z.array(z.string()),
  overrides: z
    .array(z.string())
    .optional()
    .describe('Fields that were set at run time. Absent: none. They win over the configuration.'),
  systemPrompt: z.string().nullable().optional().describe('Its instructions; in the view of one agent only.'),
  position: z.string().nullable().describe('Position of the agent in the organisation.'),
  project: z.string().nullable(),
  state: AgentState.describe('`working` while a turn of any of its sessions is open.'),
  phase: AgentPhase.nullable().describe(
    'Phase of its newest open turn, or `waiting` while a tool call waits for an approval; null unless it works.',
  ),
  current: z
    .object({
      sessionId: z.uuid(),
      taskId: z.string().nullable().describe('Task of the queue or node of a run that the session does.'),
      approvalId: z.uuid().nullable().describe('Oldest approval that the session waits for.'),
    })
    .nullable()
    .optional()
    .describe(
      'Its open session: one that waits for an approval first, then the newest. Null unless it works.',
    ),
  reason: z.string().nullable().describe('Reason of the last change of state.'),
  error: z
    .object({
      code: z.string().describe('Code of the turn that failed.'),
      failures: z.int().positive().describe('Failures in a row. Each doubles the time until the next try.'),
      retryAt: z.iso.datetime().describe('Time from which one waiting turn is tried.'),
      trialTurnId: z.uuid().nullable().describe('The turn that is tried; null before.'),
    })
    .optional()
    .describe('Present while `state` is `error`.'),
  origin: z.enum(['configuration', 'request']),
  base: z.string().describe('Configured agent whose approval rules and tool limits apply.'),
  callLimits: AgentCallLimits.optional().describe('Limits of its model calls that it was spawned with.'),
  parentId: z.string().nullable().describe('Agent that spawned it; null for the root of a tree.'),
  rootId: z.string(),
  depth: z.int().nonnegative(),
  queued: z
    .object({ position: z.int().positive(), limit: z.enum(['children', 'size']) })
    .nullable()
    .describe('Place in the queue of its tree while it is `spawning`; null if it does not wait.'),
  budget: AgentBudget.nullable(),
  spawnedAt: z.iso.datetime(),
  spawnedBy: z.string(),
  lastSeenAt: z.iso.datetime().nullable().describe('Last heartbeat; null before its first turn.'),
  lastTurnAt: z.iso
    .datetime()
    .nullish()
    .describe('Start or end of its newest turn, also of a node of a run.'),
  result: AgentResult.nullable().describe('What it finished before its end; null while it lives.'),
  isDefault: z.boolean().describe('True for the agent that gets messages without a matching binding.'),
});
export type AgentView = z.infer<typeof AgentView>;

const target = { workspace: WorkspaceId, agentId: AgentId };

/**
 * Creates an agent and its place in a tree. Errors: `AGENT.EXISTS`, `AGENT.NOT_FOUND` (base or
 * parent), `AGENT.LIMIT_REACHED` (data has the limit), `AGENT.NOT_ALLOWED`, `AGENT.STATE_CONFLICT`.
 */
export const spawnAgent = defineRequest({
  subject: 'cmd.agent.agent.spawn',
  request: z.strictObject({
    workspace: WorkspaceId,
    spec: AgentSpec,
    actor: AgentActor,
    idempotencyKey: IdempotencyKey.optional(),
  }),
  reply: z.object({ agent: AgentView }),
  timeoutMs: 15_000,
});

export const AGENT_ACTIONS = ['pause', 'resume', 'terminate'] as const;

/**
 * Changes the state of an agent and, for `pause` and `terminate`, of its descendants. A repeated
 * action changes nothing. Errors: `AGENT.NOT_FOUND`, `AGENT.STATE_CONFLICT` (data
 * has `from` and `to`).
 */
export const controlAgent = defineRequest({
  subject: 'cmd.agent.agent.control',
  request: z.strictObject({
    ...target,
    action: z.enum(AGENT_ACTIONS),
    reason: z.string().min(1).max(2_000).optional(),
    actor: AgentActor,
  }),
  reply: z.object({ agent: AgentView }),
  timeoutMs: 15_000,
});

/**
 * Changes the definition of an agent for its next model call. Errors: `AGENT.NOT_FOUND`,
 * `AGENT.NOT_ALLOWED`, `AGENT.STATE_CONFLICT`, `PROVIDER.NOT_FOUND`, `SESSION.NO_MODEL`.
 */
export const changeAgent = defineRequest({
  subject: 'cmd.agent.agent.change',
  request: z.strictObject({
    ...target,
    changes: AgentChanges,
    reason: z.string().min(1).max(2_000).optional(),
    actor: AgentActor,
  }),
  reply: z.object({ agent: AgentView }),
  timeoutMs: 15_000,
});

/** Lists agents by id, oldest first. Terminated ones only where `state` asks for them. */
export const listAgents = defineRequest({
  subject: 'cmd.agent.agent.list',
  request: z.strictObject({
    workspace: WorkspaceId,
    state: AgentState.optional(),
    project: z.string().max(200).optional(),
    parent: z.string().max(64).optional(),
    capability: z.string().max(64).optional(),
    model: z.string().max(200).optional(),
    /** Part of the id, name, role or project. */
    q: z.string().max(200).optional(),
    limit: z.int().min(1).max(1_000).default(1_000),
    cursor: z.string().max(500).optional(),
    offset: z.int().min(0).max(100_000).optional(),
    ...asOfRequest,
  }),
  reply: z.object({ agents: z.array(AgentView), nextCursor: z.string().nullable(), ...asOfReply }),
  timeoutMs: 15_000,
});

export const getAgent = defineRequest({
  subject: 'cmd.agent.agent.get',
  request: z.strictObject({ ...target, ...asOfRequest }),
  reply: z.object({ agent: AgentView, ...asOfReply }),
  timeoutMs: 15_000,
});

/** One change of state, from a fact of the agent or of a turn. */
export const AgentStateChange = z.object({
  from: AgentState.nullable().describe('Null for the first state.'),
  to: AgentState,
  phase: AgentPhase.nullable(),
  actor: z.string(),
  reason: z.string().nullable(),
  /** Event that caused the change. */
  eventId: z.uuid(),
  eventPosition: z.int().positive().describe('Position of the event in the log.'),
  at: z.iso.datetime(),
});
export type AgentStateChange = z.infer<typeof AgentStateChange>;

/** Returns the changes of an agent's state, newest first. */
export const readAgentHistory = defineRequest({
  subject: 'cmd.agent.agent.history',
  request: z.strictObject({
    ...target,
    limit: z.int().min(1).max(1_000).default(100),
    cursor: z.string().max(500).optional(),
    ...asOfRequest,
  }),
  reply: z.object({ changes: z.array(AgentStateChange), nextCursor: z.string().nullable(), ...asOfReply }),
  timeoutMs: 15_000,
});

/** Use of resources by an agent over 30 seconds, or over the step of a read. */
export const AgentMetrics = z.object({
  at: z.iso.datetime(),
  /** Processor time of its share of work, ms. */
  cpuMs: z.number().nonnegative(),
  /** Memory of its sessions and cells, bytes. */
  memoryBytes: z.int().nonnegative(),
  /** Bytes of its folder. */
  diskBytes: z.int().nonnegative(),
  diskReadBytes: z.int().nonnegative(),
  diskWrittenBytes: z.int().nonnegative(),
  turns: z.int().nonnegative(),
  modelCalls: z.int().nonnegative(),
  toolCalls: z.int().nonnegative(),
  inputTokens: z.int().nonnegative(),
  outputTokens: z.int().nonnegative(),
});
export type AgentMetrics = z.infer<typeof AgentMetrics>;

/** Seconds of a sum of samples: a multiple of 30, up to a day. */
export const SampleStep = z.coerce.number().int().min(30).max(86_400).multipleOf(30);

/** Returns the samples of an agent, newest first. */
export const readAgentMetrics = defineRequest({
  subject: 'cmd.agent.agent.metrics',
  request: z.strictObject({
    ...target,
    limit: z.int().min(1).max(2_880).default(120),
    /** Seconds that each sample of the reply covers: sums and maxima of the stored ones. */
    step: SampleStep.default(30),
    ...asOfRequest,
  }),
  reply: z.object({ samples: z.array(AgentMetrics), ...asOfReply }),
  timeoutMs: 5_000,
});

/** Use of resources by an agent at a time, for a small chart. */
export const AgentLoad = AgentMetrics.pick({ at: true, cpuMs: true, memoryBytes: true, diskBytes: true });

/** Maximum number of agents whose recent samples one request reads. */
export const MAX_CHARTED_AGENTS = 50;

/**
 * Returns the newest sample of each agent, oldest agent first, and its samples of the last minutes
 * where `agentIds` names it. `since` leaves out agents without a sample from then on. `day` is the
 * UTC day of the reply, whose costs belong to it.
 */
export const listAgentMetrics = defineRequest({
  subject: 'cmd.agent.agent.list-metrics',
  request: z.strictObject({
    workspace: WorkspaceId,
    agentIds: z.array(AgentId).max(MAX_CHARTED_AGENTS).optional(),
    minutes: z.int().min(0).max(60).default(0),
    since: z.iso.datetime().optional(),
    limit: z.int().min(1).max(1_000).default(1_000),
    cursor: z.string().max(500).optional(),
    ...asOfRequest,
  }),
  reply: z.object({
    agents: z.array(
      z.object({
        agentId: z.string(),
        latest: AgentMetrics.nullable().describe('Null for an agent without a sample.'),
        recent: z.array(AgentLoad).describe('Oldest first; only with `minutes`.'),
      }),
    ),
    day: z.iso.date(),
    nextCursor: z.string().nullable(),
    ...asOfReply,
  }),
  timeoutMs: 10_000,
});

/** Maximum number of capabilities in a list, and of agents of each. */
export const MAX_CAPABILITIES = 500;
export const MAX_CAPABLE_AGENTS = 100;

/** Lists the capabilities of living agents with these agents, by name. */
export const listCapabilities = defineRequest({
  subject: 'cmd.agent.agent.list-capabilities',
  request: z.strictObject({ workspace: WorkspaceId, ...asOfRequest }),
  reply: z.object({
    capabilities: z.array(
      z.object({
        name: z.string(),
        count: z.int().positive().describe('Number of living agents that have it.'),
        agents: z
          .array(z.object({ id: z.string(), name: z.string(), state: AgentState }))
          .describe(`The oldest ${MAX_CAPABLE_AGENTS} of them.`),
      }),
    ),
    ...asOfReply,
  }),
  timeoutMs: 5_000,
});

/** Notification that a process has stored samples of agents of a workspace. */
export const SamplesStored = z.object({ workspace: WorkspaceId, at: z.iso.datetime() });
export type SamplesStored = z.infer<typeof SamplesStored>;
export const samplesSubject = (workspace: string): string => `hint.agent.samples.${workspace}`;
