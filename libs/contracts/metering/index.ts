import { z } from 'zod';
import { AgentId } from '../agent/requests.js';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';

export const SCOPE_KINDS = ['session', 'day', 'month'] as const;
export type ScopeKind = (typeof SCOPE_KINDS)[number];

/** One budget that a reservation spends from. `period` is the UTC day or month, fixed at reservation. */
export const BudgetScope = z.object({
  kind: z.enum(SCOPE_KINDS),
  /** Row key: `session/<id>`, `day/2026-11-21`, `month/2026-11`. */
  key: z.string(),
  /** Limits in force at admission; null = none. Integers. */
  limitTokens: z.int().nonnegative().nullable(),
  limitMicroUsd: z.int().nonnegative().nullable(),
});
export type BudgetScope = z.infer<typeof BudgetScope>;

/** USD per million tokens as integer micro-USD per million tokens. */
export const Price = z.object({
  inputMicroUsdPerMtok: z.int().nonnegative(),
  outputMicroUsdPerMtok: z.int().nonnegative(),
});
export type Price = z.infer<typeof Price>;

const event = <T extends string, S extends z.ZodRawShape>(type: T, data: S) =>
  z.object({ type: z.literal(type), schemaVersion: z.literal(1), data: z.object(data) });

/** The first fact of a `budget-<reservationId>` stream. */
export const BudgetReserved = event('BudgetReserved', {
  reservationId: z.uuid(),
  sessionId: z.uuid(),
  turnId: z.uuid(),
  attempt: z.int().positive(),
  agentId: z.string(),
  sessionKey: z.string(),
  provider: z.string(),
  model: z.string(),
  scopes: z.array(BudgetScope),
  inputBound: z.int().nonnegative(),
  outputBound: z.int().nonnegative(),
  /** inputBound + outputBound: what every scope holds until the reservation ends. */
  tokens: z.int().nonnegative(),
  microUsd: z.int().nonnegative(),
  price: Price.nullable(),
  reservedAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
});
/** The charge of one attempt: the `TokenRecord` of the seeds. Over its bound it is recorded whole. */
export const BudgetSettled = event('BudgetSettled', {
  reservationId: z.uuid(),
  inputTokens: z.int().nonnegative(),
  outputTokens: z.int().nonnegative(),
  microUsd: z.int().nonnegative(),
  estimated: z.boolean(),
  settledAt: z.iso.datetime(),
});
/** Nothing can have been billed. */
export const BudgetReleased = event('BudgetReleased', {
  reservationId: z.uuid(),
  reason: z.string(),
  releasedAt: z.iso.datetime(),
});
/** Nobody said what was used in time: charged at the bound. */
export const BudgetExpired = event('BudgetExpired', {
  reservationId: z.uuid(),
  tokens: z.int().nonnegative(),
  microUsd: z.int().nonnegative(),
  expiredAt: z.iso.datetime(),
});
export const BudgetCorrected = event('BudgetCorrected', {
  reservationId: z.uuid(),
  inputTokens: z.int().nonnegative(),
  outputTokens: z.int().nonnegative(),
  microUsd: z.int().nonnegative(),
  correctedAt: z.iso.datetime(),
});
/**
 * A call used more than its bound and took this scope over its limit: it admits nothing until somebody has looked.
 * In the stream of the reservation that caused it, in the same append as its charge.
 */
export const BudgetScopeFrozen = event('BudgetScopeFrozen', {
  reservationId: z.uuid(),
  scopeKey: z.string(),
  boundTokens: z.int().nonnegative(),
  usedTokens: z.int().nonnegative(),
  boundMicroUsd: z.int().nonnegative(),
  usedMicroUsd: z.int().nonnegative(),
  frozenAt: z.iso.datetime(),
});
/** An operator has looked. In the stream of the reservation that froze the scope last. */
export const BudgetScopeUnfrozen = event('BudgetScopeUnfrozen', {
  reservationId: z.uuid(),
  scopeKey: z.string(),
  by: z.string(),
  reason: z.string(),
  unfrozenAt: z.iso.datetime(),
});
export const BudgetEvent = z.discriminatedUnion('type', [
  BudgetReserved,
  BudgetSettled,
  BudgetReleased,
  BudgetExpired,
  BudgetCorrected,
  BudgetScopeFrozen,
  BudgetScopeUnfrozen,
]);
export type BudgetEvent = z.infer<typeof BudgetEvent>;
export type BudgetEventOf<T extends BudgetEvent['type']> = Extract<BudgetEvent, { type: T }>;
export const budgetStream = (reservationId: string): string => `budget-${reservationId}`;

/** Asks for the bound of one model attempt; idempotent by `reservationId`. */
export const reserveBudget = defineRequest({
  subject: 'cmd.metering.budget.reserve',
  request: z.strictObject({
    workspace: WorkspaceId,
    reservationId: z.uuid(),
    sessionId: z.uuid(),
    turnId: z.uuid(),
    attempt: z.int().positive(),
    agentId: AgentId,
    sessionKey: z.string(),
    provider: z.string(),
    model: z.string(),
    /** Upper bound of the rendered request, in tokens. */
    inputBound: z.int().nonnegative(),
    /** What the agent would like the model to write at most. */
    maxOutputTokens: z.int().positive(),
    /**
     * Lease epoch of the session's driver. Checked in the transaction of the reservation: `LOG.FENCED` when the lease
     * has changed hands. Absent: not checked.
     */
    epoch: z.int().positive().optional(),
    /** Below this the call is refused instead of capped. */
    minOutputTokens: z.int().positive(),
    /** Lies beyond the attempt's hard deadline. */
    expiresAt: z.iso.datetime(),
  }),
  reply: z.discriminatedUnion('granted', [
    z.object({
      granted: z.literal(true),
      reservationId: z.uuid(),
      /** Never more than asked for; what the call must be capped to. */
      maxOutputTokens: z.int().positive(),
      price: Price.nullable(),
    }),
    z.object({
      granted: z.literal(false),
      /** `BudgetExceeded{scope, used, limit}` of the seeds. */
      scope: z.enum(SCOPE_KINDS),
      unit: z.enum(['tokens', 'usd']),
      /** Settled + reserved, in the unit (tokens, or dollars). */
      used: z.number().nonnegative(),
      limit: z.number().nonnegative(),
      /** `token budget exceeded (session: 9500/10000)` */
      message: z.string(),
      reason: z.enum(['over_limit', 'frozen', 'unknown_price']).optional(),
      /** The part of `used` that calls in flight still hold. */
      reserved: z.number().nonnegative().optional(),
      /** When the scope starts anew, UTC; null for a session. */
      resetsAt: z.iso.datetime().nullable().optional(),
    }),
  ]),
  timeoutMs: 10_000,
});

export type ReserveBudgetRequest = z.infer<typeof reserveBudget.request>;
export type ReserveBudgetReply = z.infer<typeof reserveBudget.reply>;

/** The reason of `not_dispatched` for a reservation that no call cites: metering looks into the log before it believes that. */
export const NEVER_BEGUN = 'never_begun';

/**
 * The outcome of an attempt, as its event in the session says it. Idempotent; a later one changes nothing.
 * `METERING.CALL_BEGUN` (conflict): given back as never begun, while a call that has begun cites it.
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
        outputTokens: z.int().nonnegative(),
        estimated: z.boolean(),
      }),
      /** Dispatched, but nobody knows the usage: charged at the bound, marked estimated. */
      z.strictObject({ kind: z.literal('unknown') }),
      z.strictObject({ kind: z.literal('not_dispatched'), reason: z.string() }),
    ]),
  }),
  reply: z.object({ status: z.enum(['settled', 'released', 'expired_estimated', 'missing']) }),
  timeoutMs: 10_000,
});

export type SettleBudgetRequest = z.infer<typeof settleBudget.request>;
export type SettleBudgetReply = z.infer<typeof settleBudget.reply>;
export type CallOutcome = SettleBudgetRequest['outcome'];

/** An operator has looked at a frozen scope; it admits calls again, within its limit. */
export const unfreezeBudget = defineRequest({
  subject: 'cmd.metering.budget.unfreeze',
  request: z.strictObject({
    workspace: WorkspaceId,
    /** `session/<id>`, `day/2026-11-21`, `month/2026-11` */
    scopeKey: z.string().min(1).max(200),
    by: z.string().min(1).max(200),
    reason: z.string().min(1).max(500),
  }),
  /** False when it was not frozen. */
  reply: z.object({ unfrozen: z.boolean() }),
  timeoutMs: 5_000,
});
export type UnfreezeBudgetRequest = z.infer<typeof unfreezeBudget.request>;

export const ScopeUsage = z.object({
  kind: z.enum(SCOPE_KINDS),
  key: z.string(),
  limitTokens: z.int().nullable(),
  limitMicroUsd: z.int().nullable(),
  reservedTokens: z.int(),
  settledTokens: z.int(),
  reservedMicroUsd: z.int(),
  settledMicroUsd: z.int(),
  /** True after a call over its bound took the scope over its limit, until an operator has looked. */
  frozen: z.boolean().optional(),
});
export type ScopeUsage = z.infer<typeof ScopeUsage>;
export const readBudgets = defineRequest({
  subject: 'cmd.metering.budget.read',
  request: z.strictObject({ workspace: WorkspaceId, sessionId: z.uuid().optional() }),
  reply: z.object({ scopes: z.array(ScopeUsage) }),
  timeoutMs: 5_000,
});

/** Ends what has expired, in every workspace; metering does so by itself as well, this is for a schedule of one's own. */
export const expireReservations = defineRequest({
  subject: 'cmd.metering.reservation.expire',
  request: z.strictObject({}),
  reply: z.object({ ended: z.int().nonnegative() }),
  timeoutMs: 20_000,
});
/** Brings the day and the month that are over to their final sums: settles what the log has an outcome of. */
export const rollBudgetPeriods = defineRequest({
  subject: 'cmd.metering.period.roll',
  request: z.strictObject({}),
  reply: z.object({ ended: z.int().nonnegative(), periods: z.array(z.string()) }),
  timeoutMs: 20_000,
});
