import { z } from 'zod';
import { CACHE_TOKENS } from '../log/cache-tokens.js';
import { event } from '../log/stored-event.js';

export const SCOPE_KINDS = ['session', 'task', 'agent', 'day', 'month'] as const;
export type ScopeKind = (typeof SCOPE_KINDS)[number];

/** One budget that a reservation spends from. The UTC day or month is fixed at reservation. */
export const BudgetScope = z.object({
  kind: z.enum(SCOPE_KINDS),
  /** Row key: `session/<id>`, `task/<id>`, `agent/<agentId>`, `day/2026-11-21`, `month/2026-11`. */
  key: z.string(),
  /** Limits at admission; null for none. */
  limitTokens: z.int().nonnegative().nullable(),
  limitMicroUsd: z.int().nonnegative().nullable(),
});
export type BudgetScope = z.infer<typeof BudgetScope>;

/**
 * Price of a model, integer micro-USD per million tokens. Cached input without a price of its own
 * costs as much as other input.
 */
export const Price = z.object({
  inputMicroUsdPerMtok: z.int().nonnegative(),
  outputMicroUsdPerMtok: z.int().nonnegative(),
  cacheReadMicroUsdPerMtok: z.int().nonnegative().optional(),
  cacheWriteMicroUsdPerMtok: z.int().nonnegative().optional(),
  cacheWrite1hMicroUsdPerMtok: z.int().nonnegative().optional(),
});
export type Price = z.infer<typeof Price>;

/** Opens a `budget-<reservationId>` stream. */
export const BudgetReserved = event('BudgetReserved', {
  reservationId: z.uuid(),
  sessionId: z.uuid(),
  turnId: z.uuid(),
  attempt: z.int().positive(),
  agentId: z.string(),
  /** The agent and its ancestors, the root last. Absent: the agent is the root of its tree. */
  agents: z.array(z.string()).optional(),
  sessionKey: z.string(),
  /** Principal that requested the turn, such as `key/<id>`. Absent in events of older versions. */
  caller: z.string().optional(),
  provider: z.string(),
  model: z.string(),
  scopes: z.array(BudgetScope),
  inputBound: z.int().nonnegative(),
  outputBound: z.int().nonnegative(),
  /** inputBound + outputBound: the amount that every scope reserves until the reservation ends. */
  tokens: z.int().nonnegative(),
  microUsd: z.int().nonnegative(),
  price: Price.nullable(),
  reservedAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
});
/** Usage record of one attempt. Usage over the bound is charged in full. */
export const BudgetSettled = event('BudgetSettled', {
  reservationId: z.uuid(),
  inputTokens: z.int().nonnegative(),
  ...CACHE_TOKENS,
  outputTokens: z.int().nonnegative(),
  microUsd: z.int().nonnegative(),
  estimated: z.boolean(),
  settledAt: z.iso.datetime(),
});
/** The reservation is released, because nothing can have been billed. */
export const BudgetReleased = event('BudgetReleased', {
  reservationId: z.uuid(),
  reason: z.string(),
  releasedAt: z.iso.datetime(),
});
/** No usage was reported in time. The attempt is charged at its bound. */
export const BudgetExpired = event('BudgetExpired', {
  reservationId: z.uuid(),
  tokens: z.int().nonnegative(),
  microUsd: z.int().nonnegative(),
  expiredAt: z.iso.datetime(),
});
/** Usage of a call as its vendor counted it, and the estimated charge that it replaces. */
export const VendorFigure = z.object({
  /** Id of the call at its vendor, which the end of the call in the session records. */
  generationId: z.string(),
  replacedTokens: z.int().nonnegative(),
  replacedMicroUsd: z.int().nonnegative(),
  /** Row keys of the scopes of the reservation. */
  scopeKeys: z.array(z.string()),
});
export type VendorFigure = z.infer<typeof VendorFigure>;
/**
 * The usage became known after the reservation expired, or after it was settled as an estimate. It
 * replaces that charge.
 */
export const BudgetCorrected = event('BudgetCorrected', {
  reservationId: z.uuid(),
  inputTokens: z.int().nonnegative(),
  ...CACHE_TOKENS,
  outputTokens: z.int().nonnegative(),
  microUsd: z.int().nonnegative(),
  /** Present where the vendor told the usage later. Absent for a usage that the session records. */
  figure: VendorFigure.optional(),
  correctedAt: z.iso.datetime(),
});
/**
 * A call exceeded its bound and took this scope over its limit. The scope admits no call until an
 * operator unfreezes it. Stored in the stream of the reservation that caused it, in the same append
 * as its charge.
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
/** An operator unfroze the scope. Stored in the stream of the reservation that froze it last. */
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
/** Kinds of scopes whose limit is the same for each scope of a workspace. */
export const WORKSPACE_SCOPES = ['session', 'day', 'month'] as const;
export type WorkspaceScope = (typeof WORKSPACE_SCOPES)[number];

/**
 * Sets what an agent and its descendants may spend together, or each session, day or month of the
 * workspace, from here on. Null for no limit. Stored in a `budget-limit-<id>` stream.
 */
export const BudgetLimitSet = event('BudgetLimitSet', {
  /** `agent/<agentId>`, or a workspace scope such as `day`. */
  scopeKey: z.string(),
  limitTokens: z.int().nonnegative().nullable(),
  limitMicroUsd: z.int().nonnegative().nullable(),
  actor: z.string().min(1).max(200),
  at: z.iso.datetime(),
  /** Time from which no process admits by the former limits of an agent that it has seen. */
  appliesBy: z.iso.datetime(),
});
export type BudgetLimitSet = z.infer<typeof BudgetLimitSet>;
/**
 * Removes the limits of a workspace scope that were set at run time. Those of the configuration
 * apply again.
 */
export const BudgetLimitRemoved = event('BudgetLimitRemoved', {
  scopeKey: z.enum(WORKSPACE_SCOPES),
  actor: z.string().min(1).max(200),
  at: z.iso.datetime(),
  /** Time from which no process admits by the removed limits. */
  appliesBy: z.iso.datetime(),
});
export const BudgetLimitEvent = z.discriminatedUnion('type', [BudgetLimitSet, BudgetLimitRemoved]);
export type BudgetLimitEvent = z.infer<typeof BudgetLimitEvent>;

/** Returns the id of the event stream with the limits of a scope (`limitUuid`: a derived id). */
export const budgetLimitStream = (limitUuid: string): string => `budget-limit-${limitUuid}`;
/** Returns the id of a reservation's event stream. */
export const budgetStream = (reservationId: string): string => `budget-${reservationId}`;
