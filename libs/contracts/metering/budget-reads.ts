import { z } from 'zod';
import { AgentId } from '../agent/agent-id.js';
import { asOfReply, asOfRequest } from '../log/as-of.js';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';
import { SCOPE_KINDS } from './budget-events.js';

/** Figure that usage is summed by. */
export const USAGE_GROUPS = ['agent', 'model', 'key', 'day'] as const;
export type UsageGroup = (typeof USAGE_GROUPS)[number];

/** Cost of the calls of one agent. Its descendants have rows of their own. */
export const AgentUsage = z.object({
  agentId: z.string(),
  calls: z.int().nonnegative().describe('Number of reserved model calls.'),
  settledTokens: z.int().nonnegative().describe('Charged to ended calls.'),
  settledMicroUsd: z.int().nonnegative(),
  reservedTokens: z.int().nonnegative().describe('Bounds of calls in flight.'),
  reservedMicroUsd: z.int().nonnegative(),
  inputTokens: z.int().nonnegative().optional().describe('Charged input, with its cached parts.'),
  outputTokens: z.int().nonnegative().optional(),
  cacheReadTokens: z.int().nonnegative().optional().describe('Input that a prompt cache read.'),
  cacheWriteTokens: z.int().nonnegative().optional().describe('Input that a prompt cache wrote.'),
  estimatedTokens: z
    .int()
    .nonnegative()
    .optional()
    .describe('Part of the charge that is an estimate, because the provider did not report it.'),
  estimatedMicroUsd: z.int().nonnegative().optional(),
});
export type AgentUsage = z.infer<typeof AgentUsage>;

/** Cost of the calls of one model, caller or day. */
export const UsageOfGroup = AgentUsage.omit({ agentId: true }).extend({
  name: z
    .string()
    .describe(
      '`<provider>/<model>`; the caller of the turn, such as `key/<id>`; or the UTC day of admission.',
    ),
});
export type UsageOfGroup = z.infer<typeof UsageOfGroup>;

/**
 * Returns the cost of each agent from the ledger, most expensive first, and their sum. Of one
 * agent, of the tree of a root, or of all. Terminated agents count. `by` sums by model, key or day
 * instead of by agent: `groups` then has the rows, newest day first.
 */
export const readAgentUsage = defineRequest({
  subject: 'cmd.metering.usage.read',
  request: z.strictObject({
    workspace: WorkspaceId,
    agentId: AgentId.optional(),
    rootId: AgentId.optional(),
    by: z.enum(USAGE_GROUPS).optional(),
    /** Only calls that were admitted on this UTC day. */
    day: z.iso.date().optional(),
    ...asOfRequest,
  }),
  reply: z.object({
    agents: z.array(AgentUsage),
    groups: z.array(UsageOfGroup).optional(),
    total: AgentUsage.omit({ agentId: true }),
    ...asOfReply,
  }),
  timeoutMs: 10_000,
});

/** Limits and usage of one budget. */
export const ScopeUsage = z.object({
  kind: z.enum(SCOPE_KINDS),
  key: z.string(),
  limitTokens: z.int().nullable(),
  limitMicroUsd: z.int().nullable(),
  reservedTokens: z.int(),
  settledTokens: z.int(),
  reservedMicroUsd: z.int(),
  settledMicroUsd: z.int(),
  /** Origin of the limits: the configuration, or a change at run time. Absent for tasks. */
  limitFrom: z.enum(['configuration', 'run_time']).optional(),
  /**
   * True after a call over its bound took the scope over its limit, until an operator unfreezes it.
   */
  frozen: z.boolean().optional(),
});
export type ScopeUsage = z.infer<typeof ScopeUsage>;
/** Limits that each session of a workspace has. */
const EachSession = ScopeUsage.pick({ limitTokens: true, limitMicroUsd: true, limitFrom: true });
/** Returns the limits and usage of the budgets of a workspace. */
export const readBudgets = defineRequest({
  subject: 'cmd.metering.budget.read',
  request: z.strictObject({
    workspace: WorkspaceId,
    sessionId: z.uuid().optional(),
    /** Adds the budget of this agent, if it has a limit. */
    agentId: AgentId.optional(),
    /** Adds the budgets of all agents with a limit. */
    withAgents: z.boolean().optional(),
    ...asOfRequest,
  }),
  reply: z.object({
    scopes: z.array(ScopeUsage),
    eachSession: EachSession.optional().describe('Limits of each session.'),
    ...asOfReply,
  }),
  timeoutMs: 15_000,
});

/** Returns what the calls of sessions have cost. A session without a call is absent. */
export const readSessionCosts = defineRequest({
  subject: 'cmd.metering.session.costs',
  request: z.strictObject({
    workspace: WorkspaceId,
    sessionIds: z.array(z.uuid()).max(200),
    ...asOfRequest,
  }),
  reply: z.object({
    sessions: z.array(
      z.object({ sessionId: z.uuid(), tokens: z.int().nonnegative(), microUsd: z.int().nonnegative() }),
    ),
    ...asOfReply,
  }),
  timeoutMs: 10_000,
});
