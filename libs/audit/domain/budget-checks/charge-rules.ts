import { boundMicroUsd, cacheTokensOf, costMicroUsd } from '@antiphon/kernel';
import type { CacheTokens } from '@antiphon/kernel';
import type { SessionEventOf, Usage } from '@antiphon/contracts/agent';
import type { BudgetEventOf } from '@antiphon/contracts/metering';
import { type EventPlace, type Finding, open, violation } from '../audit-check.js';

export type Reserved = BudgetEventOf<'BudgetReserved'>['data'];
export type CallEnd = SessionEventOf<'ModelCallCompleted' | 'ModelCallAborted'>;

/** Charge of a model attempt according to its event in the session. */
export type ExpectedCharge =
  | { readonly kind: 'nothing' }
  | {
      readonly kind: 'charge';
      readonly cache: CacheTokens;
      readonly inputTokens: number;
      readonly outputTokens: number;
      readonly microUsd: number;
      readonly estimated: boolean;
    };

/** A reservation for which an event is still expected. */
export interface Account {
  readonly reserved: Reserved;
  readonly at: EventPlace;
  /** End of its model attempt, and the charge that follows from it. */
  end: {
    readonly at: EventPlace;
    readonly expected: ExpectedCharge;
    /** Id by which the vendor tells an estimated usage later. */
    readonly generationId?: string;
  } | null;
  expired: boolean;
  /** True once it was charged with an estimate that the vendor's figure may replace. */
  settled?: boolean;
  /** True once a model attempt with this reservation has started. */
  begun: boolean;
}

const computeCharge = ({ price }: Reserved, usage: Usage): ExpectedCharge => ({
  kind: 'charge',
  inputTokens: usage.inputTokens,
  cache: cacheTokensOf(usage),
  outputTokens: usage.outputTokens,
  microUsd: price === null ? 0 : costMicroUsd(price, usage),
  estimated: usage.estimated,
});

const computeBound = ({ price, inputBound, outputBound }: Reserved): ExpectedCharge => ({
  kind: 'charge',
  inputTokens: inputBound,
  cache: {},
  outputTokens: outputBound,
  microUsd: price === null ? 0 : boundMicroUsd(price, inputBound, outputBound),
  estimated: true,
});

/** Reasons of a call that its provider refused: the refusal, or a stop in the same moment. */
const REFUSAL_REASONS: ReadonlySet<string> = new Set(['provider_error', 'cancelled', 'provider_timeout']);

/** A process that was lost cannot know of a refusal; one that stopped in order can. */
const isRefusal = ({
  refused,
  reason,
  released,
  usage,
}: SessionEventOf<'ModelCallAborted'>['data']): boolean =>
  refused === true &&
  usage === null &&
  (REFUSAL_REASONS.has(reason) || (reason === 'driver_lost' && released === true));

/**
 * Returns no charge for a call that was not sent or that its provider refused, and the charge of
 * its usage if that is known. In all other cases returns the whole bound as an estimate.
 */
export const computeExpectedCharge = (reserved: Reserved, event: CallEnd): ExpectedCharge => {
  const { usage } = event.data;
  if (event.type === 'ModelCallAborted') {
    if (!event.data.dispatched || isRefusal(event.data)) return { kind: 'nothing' };
  }
  return usage === null ? computeBound(reserved) : computeCharge(reserved, usage);
};

interface Charge {
  readonly inputTokens: number;
  readonly cache: CacheTokens;
  readonly outputTokens: number;
  readonly microUsd: number;
}

const NO_CHARGE: Charge = { inputTokens: 0, cache: {}, outputTokens: 0, microUsd: 0 };

/** Returns the parts of the input that a cache read, wrote, and wrote for an hour. */
const cacheParts = ({ cacheReadTokens, cacheWriteTokens, cacheWrite1hTokens }: CacheTokens): number[] =>
  [cacheReadTokens, cacheWriteTokens, cacheWrite1hTokens].map((count) => count ?? 0);

const describe = ({ inputTokens, cache, outputTokens, microUsd }: Charge): string => {
  const [read = 0, written = 0] = cacheParts(cache);
  const cached = read + written > 0 ? ` (${read} read from a cache, ${written} written)` : '';
  return `${inputTokens}${cached} + ${outputTokens} tokens, ${microUsd} micro-USD`;
};

/** Compares a charge with the usage of its model attempt. */
export const checkCharge = (
  charge: BudgetEventOf<'BudgetSettled' | 'BudgetCorrected'>['data'],
  { end }: Account,
  at: EventPlace,
): Finding[] => {
  if (!end) return [violation(at, 'a charge came before the end of its model attempt')];
  const { expected } = end;
  const due = expected.kind === 'nothing' ? NO_CHARGE : expected;
  const charged = { ...charge, cache: cacheTokensOf(charge) };
  const isEqual =
    due.inputTokens === charge.inputTokens &&
    cacheParts(due.cache).join() === cacheParts(charged.cache).join() &&
    due.outputTokens === charge.outputTokens &&
    due.microUsd === charge.microUsd;
  return isEqual
    ? []
    : [violation(at, `charged ${describe(charged)}; the model attempt used ${describe(due)}`)];
};

export const checkSettlement = (
  data: BudgetEventOf<'BudgetSettled'>['data'],
  account: Account,
  at: EventPlace,
): Finding[] => {
  const expected = account.end?.expected;
  if (expected?.kind === 'nothing')
    return [violation(at, 'a call that was never sent, or was refused by its provider, was charged')];
  const findings = checkCharge(data, account, at);
  if (expected && expected.estimated !== data.estimated) {
    const message = `the charge is marked estimated=${data.estimated}, the usage estimated=${expected.estimated}`;
    findings.push(violation(at, message));
  }
  return findings;
};

/**
 * Checks a charge by the figure of a vendor: it belongs to the call, replaces its estimate, and has
 * the price of the reservation.
 */
export const checkFigure = (
  charge: BudgetEventOf<'BudgetCorrected'>['data'],
  { reserved: { price, tokens, microUsd }, end, expired }: Account,
  at: EventPlace,
): Finding[] => {
  const { figure } = charge;
  if (!figure || end?.expected.kind !== 'charge' || !end.expected.estimated)
    return [violation(at, 'the figure of a vendor replaced no estimate')];
  const { expected, generationId } = end;
  const before = expired
    ? { tokens, microUsd }
    : { tokens: expected.inputTokens + expected.outputTokens, microUsd: expected.microUsd };
  const due = price === null ? 0 : costMicroUsd(price, charge);
  return [
    ...(figure.generationId === generationId ? [] : [violation(at, 'the figure is that of another call')]),
    ...(figure.replacedTokens === before.tokens && figure.replacedMicroUsd === before.microUsd
      ? []
      : [
          violation(at, `the figure replaced ${figure.replacedTokens} tokens; ${before.tokens} were charged`),
        ]),
    ...(charge.microUsd === due
      ? []
      : [violation(at, `the figure was charged ${charge.microUsd} micro-USD; by its price it is ${due}`)]),
  ];
};

export const checkRelease = ({ end, begun }: Account, at: EventPlace): Finding[] => {
  // The driver reserved while it committed the start of the attempt, and that commit failed.
  if (!end && !begun) return [];
  if (!end) return [violation(at, 'a reservation was released before the end of its model attempt')];
  return end.expected.kind === 'nothing' ? [] : [violation(at, 'a call that was sent was not charged')];
};

export const checkExpiry = (
  data: BudgetEventOf<'BudgetExpired'>['data'],
  { reserved: { tokens, microUsd } }: Account,
  at: EventPlace,
): Finding[] => {
  if (data.tokens === tokens && data.microUsd === microUsd) return [];
  const expired = `expired at ${data.tokens} tokens, ${data.microUsd} micro-USD`;
  return [violation(at, `${expired}; its bound was ${tokens}, ${microUsd}`)];
};

/** Compares the cost in the session's event with the price of the reservation. */
export const checkRecordedCost = (
  event: CallEnd,
  expected: ExpectedCharge,
  { price }: Reserved,
  at: EventPlace,
): Finding[] => {
  if (event.type !== 'ModelCallCompleted' || expected.kind === 'nothing') return [];
  const due = price === null ? null : expected.microUsd;
  if (event.data.costMicroUsd === due) return [];
  const message = `the session records a cost of ${event.data.costMicroUsd}; by its price it is ${due}`;
  return [violation(at, message)];
};

/** True for a charge of the whole bound: an expired reservation was charged exactly that. */
const isBound = (expected: ExpectedCharge, { inputBound, outputBound }: Reserved): boolean =>
  expected.kind === 'charge' &&
  expected.estimated &&
  expected.inputTokens === inputBound &&
  expected.outputTokens === outputBound;

/** Returns an open finding for an account that still waits for its end or its charge. */
export const findDue = ({ reserved, end, expired, settled, at }: Account): Finding[] => {
  if (settled) return [];
  if (!end) return [open(at, 'the model attempt of this reservation has not ended')];
  if (expired && isBound(end.expected, reserved)) return [];
  return [open(end.at, `the end of this model attempt is not ${expired ? 'corrected' : 'settled'} yet`)];
};

/** True for a call that completed or whose tokens the provider counted. It needs a reservation. */
export const wasSent = (event: CallEnd): boolean =>
  event.type === 'ModelCallCompleted' || event.data.usage !== null;

export const wasRefused = (event: CallEnd): boolean =>
  event.type === 'ModelCallAborted' && event.data.reason === 'budget_refused';
