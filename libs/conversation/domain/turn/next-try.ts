import type { FailedTry, OpenTurn } from '../session/session-state.js';
import { DEFAULT_TRIES, MAX_LOST_DRIVERS } from '../session/retry-policy.js';
import type { AgentPolicy, BeginCall, FailTurn, ModelChoice } from './step.js';
import { failFor } from './turn-failure.js';

/** Error code of a turn by the reason of its last failed try (docs/errors.md). */
export const FAILURE_CODES = {
  budget_refused: 'BUDGET.EXCEEDED',
  provider_unreachable: 'PROVIDER.UNREACHABLE',
  provider_timeout: 'PROVIDER.TIMEOUT',
  provider_error: 'PROVIDER.ERROR',
  provider_protocol: 'PROVIDER.PROTOCOL',
  provider_paused: 'PROVIDER.PAUSED',
  dependency_failed: 'TURN.DEPENDENCY_FAILED',
  driver_lost: 'TURN.DRIVER_LOST',
  // A call that stopped without a cancel counts as a lost driver's.
  cancelled: 'TURN.DRIVER_LOST',
} as const satisfies Record<FailedTry['reason'], string>;

/** Codes of calls that were refused before they were sent, by the kind of their cause. */
const REFUSAL_CODES: Readonly<Partial<Record<FailedTry['cause']['kind'], string>>> = {
  images_not_taken: 'MODEL.IMAGES_NOT_TAKEN',
};

const codeOf = ({ reason, cause }: FailedTry): string => REFUSAL_CODES[cause.kind] ?? FAILURE_CODES[reason];

const isLost = ({ reason }: FailedTry): boolean => reason === 'driver_lost' || reason === 'cancelled';
/** Returns true for a try whose process was lost. One that stopped in order is not. */
const hasLostDriver = (failed: FailedTry): boolean => isLost(failed) && failed.released !== true;
const isAt =
  (choice: ModelChoice) =>
  (other: ModelChoice): boolean =>
    other.provider === choice.provider && other.model === choice.model;

const isOpen = ({ openCircuits }: AgentPolicy, { provider }: ModelChoice): boolean =>
  openCircuits.get(provider)?.state === 'open';

/**
 * Returns the model of a step's first try, or null if all circuits are open. A turn stays with the
 * fallback after an answer from it: the primary provider has just failed.
 */
const chooseFirst = (turn: OpenTurn, policy: AgentPolicy): ModelChoice | null => {
  const last = turn.steps.at(-1);
  const onFallback = last && policy.fallback && isAt(policy.fallback)(last);
  const primary = (onFallback ? policy.fallback : policy) as ModelChoice;
  const secondary = onFallback ? policy : policy.fallback;
  if (!policy.openCircuits.has(primary.provider)) return primary;
  // A turn with an alternative does not wait for the result of a probe call.
  if (secondary && !policy.openCircuits.has(secondary.provider)) return secondary;
  if (!isOpen(policy, primary)) return primary;
  return secondary && !isOpen(policy, secondary) ? secondary : null;
};

const failuresAt = (turn: OpenTurn, choice: ModelChoice): number =>
  turn.tries.filter((failed) => !isLost(failed) && isAt(choice)(failed)).length;

/** Returns true if the same provider may be retried after this failure. */
const canRetry = (turn: OpenTurn, last: FailedTry): boolean =>
  isLost(last)
    ? turn.tries.filter(hasLostDriver).length < MAX_LOST_DRIVERS
    : last.retryable && failuresAt(turn, last) < (last.tries ?? DEFAULT_TRIES);

/** Returns the fallback, unless the step tried it already or its circuit is open. */
const availableFallback = (turn: OpenTurn, policy: AgentPolicy, last: FailedTry): ModelChoice | null => {
  const { fallback } = policy;
  // A refused budget or a failed service of ours is not the provider's failure.
  const isProviders = last.reason !== 'budget_refused' && last.reason !== 'dependency_failed';
  return fallback && isProviders && !turn.tries.some(isAt(fallback)) && !isOpen(policy, fallback)
    ? fallback
    : null;
};

/** Returns the model of the next try after a failed one, or null without any left. */
const chooseNext = (turn: OpenTurn, policy: AgentPolicy, last: FailedTry): ModelChoice | null => {
  const retry = canRetry(turn, last);
  if (isLost(last) && !retry) return null;
  if (retry && !policy.openCircuits.has(last.provider)) return last;
  const fallback = availableFallback(turn, policy, last);
  return fallback ?? (retry && !isOpen(policy, last) ? last : null);
};

const circuitOpenFailure = (
  turnId: string,
  policy: AgentPolicy,
  { provider }: ModelChoice,
  last?: FailedTry,
): FailTurn => {
  const until = policy.openCircuits.get(provider)?.until ?? '';
  const lastError = last && last.reason !== 'provider_paused' ? last.cause : null;
  return failFor(turnId, { kind: 'provider_paused', provider, until, lastError });
};

/**
 * Returns the next try of the current step. Retries the same provider as often as its settings
 * allow, three times by default. Then uses the fallback, and skips a provider whose circuit is
 * open. Tries whose driver was lost do not count against a provider; they have their own limit.
 */
export const nextTry = (turn: OpenTurn, policy: AgentPolicy): BeginCall | FailTurn => {
  const { turnId, tries } = turn;
  const begin = ({ provider, model }: ModelChoice, failures: number): BeginCall => ({
    kind: 'begin_call',
    turnId,
    step: turn.steps.length + 1,
    tryNumber: tries.length + 1,
    provider,
    model,
    failures,
    lostDrivers: tries.filter(hasLostDriver).length,
  });
  const last = tries.at(-1);
  if (!last) {
    const first = chooseFirst(turn, policy);
    return first ? begin(first, 0) : circuitOpenFailure(turnId, policy, policy);
  }
  const choice = chooseNext(turn, policy, last);
  if (!choice && canRetry(turn, last) && isOpen(policy, last))
    return circuitOpenFailure(turnId, policy, last, last);
  if (!choice) return { kind: 'fail', turnId, code: codeOf(last), cause: last.cause };
  return begin(choice, isLost(last) ? 0 : failuresAt(turn, choice));
};
