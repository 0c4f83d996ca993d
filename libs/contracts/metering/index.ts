import { z } from 'zod';
import { CACHE_TOKENS } from '../log/cache-tokens.js';
import { Cause } from '../log/stored-event.js';
import { AgentId } from '../agent/agent-id.js';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';
import { Price, SCOPE_KINDS, WORKSPACE_SCOPES } from './budget-events.js';

export * from './budget-events.js';
export * from './budget-reads.js';
export * from './call-extension.js';

/** Budget of a task: what its attempts and the tasks below it may spend together. */
export const TaskLimits = z.strictObject({
  taskId: z.uuid(),
  limitTokens: z.int().nonnegative().nullable(),
  limitMicroUsd: z.int().nonnegative().nullable(),
});
export type TaskLimits = z.infer<typeof TaskLimits>;

/** Reserves the bound of one model attempt. Idempotent by `reservationId`. */
export const reserveBudget = defineRequest({
  subject: 'cmd.metering.budget.reserve',
  request: z.strictObject({
    workspace: WorkspaceId,
    reservationId: z.uuid(),
    sessionId: z.uuid(),
    turnId: z.uuid(),
    attempt: z.int().positive(),
    agentId: AgentId,
    /**
     * The agent and its ancestors, the root last. The call is also admitted by the limit of each
     * that has one. Absent: only the agent.
     */
    agents: z.array(AgentId).max(32).optional(),
    /**
     * Tasks with a budget that the call is part of, innermost first. The call is also admitted by
     * each. The limits are those of `TaskQueued`, and never change.
     */
    tasks: z.array(TaskLimits).max(32).optional(),
    sessionKey: z.string(),
    /** Principal that requested the turn, for the usage by key. */
    caller: z.string().max(200).optional(),
    provider: z.string(),
    /** Kind of a provider that was connected at run time, for its price. */
    providerKind: z.string().max(64).optional(),
    model: z.string(),
    /** Upper bound of the rendered request, in tokens. */
    inputBound: z.int().nonnegative(),
    /** Maximum number of output tokens that the agent wants. */
    maxOutputTokens: z.int().positive(),
    /**
     * Lease epoch of the session's driver, checked in the transaction of the reservation.
     * `LOG.FENCED` if another process holds the lease. Absent: not checked.
     */
    epoch: z.int().positive().optional(),
    /**
     * Minimum number of output tokens. With less budget left the call is refused instead of capped.
     */
    minOutputTokens: z.int().positive(),
    /** Expiry of the reservation, after the attempt's hard deadline. Unused with `lifetimeMs`. */
    expiresAt: z.iso.datetime(),
    /** Time until the reservation expires, ms, by PostgreSQL's clock. */
    lifetimeMs: z.int().positive().max(86_400_000).optional(),
  }),
  reply: z.discriminatedUnion('granted', [
    z.object({
      granted: z.literal(true),
      reservationId: z.uuid(),
      /** Cap for the call, at most the requested maximum. */
      maxOutputTokens: z.int().positive(),
      price: Price.nullable(),
    }),
    z.object({
      granted: z.literal(false),
      /** Scope whose limit was reached. */
      scope: z.enum(SCOPE_KINDS),
      /** Row key of that scope, such as `agent/<agentId>`. */
      scopeKey: z.string().optional(),
      unit: z.enum(['tokens', 'usd']),
      /** Settled + reserved, in the unit (tokens, or dollars). */
      used: z.number().nonnegative(),
      limit: z.number().nonnegative(),
      /** Text for the user, such as `token budget exceeded (session: 9500/10000)`. */
      message: z.string(),
      cause: Cause.optional(),
      reason: z.enum(['over_limit', 'frozen', 'unknown_price']).optional(),
      /** Part of `used` that calls in flight reserve. */
      reserved: z.number().nonnegative().optional(),
      /** Time at which the scope resets, UTC; null for a session, a task and an agent. */
      resetsAt: z.iso.datetime().nullable().optional(),
    }),
  ]),
  timeoutMs: 10_000,
});

export type ReserveBudgetRequest = z.infer<typeof reserveBudget.request>;
export type ReserveBudgetReply = z.infer<typeof reserveBudget.reply>;

/**
 * Reason of `not_dispatched` for a reservation that no call cites. Metering verifies it against the
 * log.
 */
export const NEVER_BEGUN = 'never_begun';

/** Reason of `not_dispatched` for a call that the provider answered with an error and no usage. */
export const REFUSED = 'refused';

/**
 * Notifies metering that an attempt has ended. Metering settles its reservation with the outcome
 * in the log, not with `outcome`. Idempotent. Throws `METERING.NOT_IN_LOG` (conflict) while the log
 * has no end of the attempt. With `never_begun` it releases the reservation, and throws
 * `METERING.CALL_BEGUN` (conflict) if a call in the log cites it.
 */
export const settleBudget = defineRequest({
  subject: 'cmd.metering.budget.settle',
  request: z.strictObject({
    workspace: WorkspaceId,
    reservationId: z.uuid(),
    outcome: z.discriminatedUnion('kind', [
      z.strictObject({
        kind: z.literal('used'),
        inputTokens: z.int().nonnegative(),
        ...CACHE_TOKENS,
        outputTokens: z.int().nonnegative(),
        estimated: z.boolean(),
      }),
      /** Dispatched with unknown usage: charged at the bound and marked as estimated. */
      z.strictObject({ kind: z.literal('unknown') }),
      /** Not sent, or refused by the provider: charged 0. */
      z.strictObject({ kind: z.literal('not_dispatched'), reason: z.string() }),
    ]),
  }),
  reply: z.object({ status: z.enum(['settled', 'released', 'expired_estimated', 'missing']) }),
  timeoutMs: 10_000,
});

export type SettleBudgetRequest = z.infer<typeof settleBudget.request>;
export type SettleBudgetReply = z.infer<typeof settleBudget.reply>;
export type CallOutcome = SettleBudgetRequest['outcome'];

/**
 * Replaces the estimated charge of a call with the usage that its vendor counted, once. Metering
 * checks in the log that the call ended with an estimate and has this id. A repeat changes nothing.
 * Throws `METERING.NOT_IN_LOG` (conflict) while the log has no such end, and
 * `METERING.NOT_SETTLED` (transient) while the reservation is open.
 */
export const correctCharge = defineRequest({
  subject: 'cmd.metering.charge.correct',
  request: z.strictObject({
    workspace: WorkspaceId,
    reservationId: z.uuid(),
    generationId: z.string().min(1).max(200),
    usage: z.strictObject({
      inputTokens: z.int().nonnegative(),
      ...CACHE_TOKENS,
      outputTokens: z.int().nonnegative(),
    }),
  }),
  /** False if the charge is final. */
  reply: z.object({ corrected: z.boolean() }),
  timeoutMs: 10_000,
});
export type CorrectChargeRequest = z.infer<typeof correctCharge.request>;

/** Unfreezes a scope, so that it admits calls again within its limit. */
export const unfreezeBudget = defineRequest({
  subject: 'cmd.metering.budget.unfreeze',
  request: z.strictObject({
    workspace: WorkspaceId,
    /** `session/<id>`, `task/<id>`, `agent/<agentId>`, `day/2026-11-21`, `month/2026-11` */
    scopeKey: z.string().min(1).max(200),
    by: z.string().min(1).max(200),
    reason: z.string().min(1).max(500),
  }),
  /** False if the scope was not frozen. */
  reply: z.object({ unfrozen: z.boolean() }),
  timeoutMs: 5_000,
});
export type UnfreezeBudgetRequest = z.infer<typeof unfreezeBudget.request>;

const LimitAmounts = {
  limitTokens: z.int().nonnegative().nullable(),
  limitMicroUsd: z.int().nonnegative().nullable(),
};

/**
 * Sets the limits of an agent and its descendants together, or those of each session, day or month
 * of the workspace. The latter replace the limits of the configuration until they are removed with
 * `isRemoved`. Repeating it changes nothing. Call it before an agent is spawned: a first
 * reservation then finds its limits. A change reaches the other metering processes within a second.
 */
export const setBudgetLimit = defineRequest({
  subject: 'cmd.metering.limit.set',
  request: z.union([
    z.strictObject({
      workspace: WorkspaceId,
      agentId: AgentId,
      ...LimitAmounts,
      actor: z.string().min(1).max(200),
    }),
    z.strictObject({
      workspace: WorkspaceId,
      scope: z.enum(WORKSPACE_SCOPES),
      ...LimitAmounts,
      isRemoved: z.boolean().optional(),
      actor: z.string().min(1).max(200),
    }),
  ]),
  /** False if the limits were in force already. */
  reply: z.object({ changed: z.boolean() }),
  timeoutMs: 5_000,
});
export type SetBudgetLimitRequest = z.infer<typeof setBudgetLimit.request>;

/**
 * Expires overdue reservations in every workspace. Metering also does so by itself; a schedule may
 * call this.
 */
export const expireReservations = defineRequest({
  subject: 'cmd.metering.reservation.expire',
  request: z.strictObject({}),
  reply: z.object({ ended: z.int().nonnegative() }),
  timeoutMs: 20_000,
});
/**
 * Brings finished days and months to their final sums. It settles every reservation whose outcome
 * is in the log.
 */
export const rollBudgetPeriods = defineRequest({
  subject: 'cmd.metering.period.roll',
  request: z.strictObject({}),
  reply: z.object({ ended: z.int().nonnegative(), periods: z.array(z.string()) }),
  timeoutMs: 20_000,
});
