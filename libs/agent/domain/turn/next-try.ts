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

/** A turn stays with the fallback once that has answered: the first provider has just shown that it is down. */
const firstChoice = (turn: OpenTurn, policy: AgentPolicy): ModelChoice => {
  const last = turn.steps.at(-1);
  return last && policy.fallback && isAt(policy.fallback)(last) ? policy.fallback : policy;
};

const failuresAt = (turn: OpenTurn, choice: ModelChoice): number =>
  turn.tries.filter((failed) => !isLost(failed) && isAt(choice)(failed)).length;

/** Which model is asked next, or null when nobody is left to ask. */
const nextChoice = (turn: OpenTurn, policy: AgentPolicy, last: FailedTry): ModelChoice | null => {
  if (isLost(last)) return turn.tries.filter(isLost).length < MAX_LOST_DRIVERS ? last : null;
  if (last.retryable && failuresAt(turn, last) < MAX_TRIES_PER_PROVIDER) return last;
  const { fallback } = policy;
  // A refusal for money, or a service of ours that is broken, is none of the provider's.
  const isProviders = last.reason !== 'budget_refused' && last.reason !== 'dependency_failed';
  return fallback && isProviders && !turn.tries.some(isAt(fallback)) ? fallback : null;
};

/**
 * The next try of the step in hand: the same provider up to three times while a repeat may help, then the fallback.
 * Tries whose driver was lost do not count against a provider; they have a cap of their own.
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
  if (!last) return begin(firstChoice(turn, policy), 0);
  const choice = nextChoice(turn, policy, last);
  if (!choice) return { kind: 'fail', turnId, code: FAILURE_CODES[last.reason], message: last.message };
  return begin(choice, isLost(last) ? 0 : failuresAt(turn, choice));
};
