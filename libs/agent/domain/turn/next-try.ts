import type { FailedTry, OpenTurn } from '../session/session-state.js';
import type { AgentPolicy, BeginCall, FailTurn, ModelChoice } from './step.js';
import { MAX_LOST_DRIVERS, MAX_TRIES_PER_PROVIDER } from './turn-policy.js';

/** How a turn fails when its last try ended so (docs/errors.md). */
export const FAILURE_CODES = {
  budget_refused: 'BUDGET.EXCEEDED',
  provider_unreachable: 'PROVIDER.UNREACHABLE',
  provider_timeout: 'PROVIDER.TIMEOUT',
  provider_error: 'PROVIDER.ERROR',
  provider_protocol: 'PROVIDER.PROTOCOL',
  provider_paused: 'PROVIDER.PAUSED',
  dependency_failed: 'TURN.DEPENDENCY_FAILED',
  driver_lost: 'TURN.DRIVER_LOST',
  // A call that was stopped without anybody asking for it counts as a lost driver's.
  cancelled: 'TURN.DRIVER_LOST',
} as const satisfies Record<FailedTry['reason'], string>;

const isLost = ({ reason }: FailedTry): boolean => reason === 'driver_lost' || reason === 'cancelled';
const isAt =
  (choice: ModelChoice) =>
  (other: ModelChoice): boolean =>
    other.provider === choice.provider && other.model === choice.model;

const isOpen = ({ openCircuits }: AgentPolicy, { provider }: ModelChoice): boolean =>
  openCircuits.get(provider)?.state === 'open';

/** A turn stays with the fallback once that has answered: the first provider has just shown that it is down. */
const firstChoice = (turn: OpenTurn, policy: AgentPolicy): ModelChoice | null => {
  const last = turn.steps.at(-1);
  const onFallback = last && policy.fallback && isAt(policy.fallback)(last);
  const own = (onFallback ? policy.fallback : policy) as ModelChoice;
  const other = onFallback ? policy : policy.fallback;
  if (!policy.openCircuits.has(own.provider)) return own;
  // Whoever has somewhere else to go does not wait for a trial call to come back.
  if (other && !policy.openCircuits.has(other.provider)) return other;
  if (!isOpen(policy, own)) return own;
  return other && !isOpen(policy, other) ? other : null;
};

const failuresAt = (turn: OpenTurn, choice: ModelChoice): number =>
  turn.tries.filter((failed) => !isLost(failed) && isAt(choice)(failed)).length;

/** Whether the same provider may be asked again after this. */
const mayRepeat = (turn: OpenTurn, last: FailedTry): boolean =>
  isLost(last)
    ? turn.tries.filter(isLost).length < MAX_LOST_DRIVERS
    : last.retryable && failuresAt(turn, last) < MAX_TRIES_PER_PROVIDER;

/** The fallback, while it is fresh and asked. */
const elsewhere = (turn: OpenTurn, policy: AgentPolicy, last: FailedTry): ModelChoice | null => {
  const { fallback } = policy;
  // A refusal for money, or a service of ours that is broken, is none of the provider's.
  const isProviders = last.reason !== 'budget_refused' && last.reason !== 'dependency_failed';
  return fallback && isProviders && !turn.tries.some(isAt(fallback)) && !isOpen(policy, fallback)
    ? fallback
    : null;
};

/** Which model is asked next, or null when nobody is left to ask. */
const nextChoice = (turn: OpenTurn, policy: AgentPolicy, last: FailedTry): ModelChoice | null => {
  const repeat = mayRepeat(turn, last);
  if (isLost(last) && !repeat) return null;
  if (repeat && !policy.openCircuits.has(last.provider)) return last;
  const other = elsewhere(turn, policy, last);
  return other ?? (repeat && !isOpen(policy, last) ? last : null);
};

const pausedFailure = (
  turnId: string,
  policy: AgentPolicy,
  { provider }: ModelChoice,
  last?: FailedTry,
): FailTurn => {
  const until = policy.openCircuits.get(provider)?.until ?? '';
  const because = last && last.reason !== 'provider_paused' ? `; it last failed with: ${last.message}` : '';
  const message = `provider ${provider} is paused until ${until} after failures in a row${because}`;
  return { kind: 'fail', turnId, code: FAILURE_CODES.provider_paused, message };
};

/**
 * The next try of the step in hand: the same provider up to three times while a repeat may help, then the fallback.
 * A provider that is paused is passed over. Tries whose driver was lost do not count against a provider; they have a cap of their own.
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
  });
  const last = tries.at(-1);
  if (!last) {
    const first = firstChoice(turn, policy);
    return first ? begin(first, 0) : pausedFailure(turnId, policy, policy);
  }
  const choice = nextChoice(turn, policy, last);
  if (!choice && mayRepeat(turn, last) && isOpen(policy, last))
    return pausedFailure(turnId, policy, last, last);
  if (!choice) return { kind: 'fail', turnId, code: FAILURE_CODES[last.reason], message: last.message };
  return begin(choice, isLost(last) ? 0 : failuresAt(turn, choice));
};
