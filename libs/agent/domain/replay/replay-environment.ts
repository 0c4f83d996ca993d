import type { SessionEvent, TurnPolicy } from '@antiphon/contracts/agent';
import { NO_OPEN_CIRCUITS } from '../circuit-breaker.js';
import type { OpenCircuit, OpenCircuits } from '../circuit-breaker.js';
import type { SessionState } from '../session/session-state.js';
import type { ModelChoice } from '../turn/step.js';

const PAUSED_UNTIL = /^provider (.+) is paused until (\S*) after failures in a row/;
const MADE_CALLS = /^the agent made (\d+) model calls/;

const choiceOf = ({ provider, model }: ModelChoice): ModelChoice => ({ provider, model });

/** The choice of a session that came to no call: the provider that it was told to be paused. */
const pausedChoice = (events: readonly SessionEvent[]): ModelChoice | null => {
  const provider = events.flatMap((event) =>
    event.type === 'TurnFailed' ? (PAUSED_UNTIL.exec(event.data.message)?.[1] ?? []) : [],
  )[0];
  return provider === undefined ? null : { provider, model: '' };
};

/**
 * The policy by which decisions were made before one was recorded: the first that was; in a session that has none,
 * its first choice, the other one that it took, and the bound that a turn ran into, if one did.
 */
export const inferPolicy = (events: readonly SessionEvent[]): TurnPolicy | null => {
  const calls = events.flatMap((event) => (event.type === 'ModelCallStarted' ? [event.data] : []));
  const recorded = calls.find(({ policy }) => policy)?.policy;
  const first = calls[0] ?? pausedChoice(events);
  if (recorded || !first) return recorded ?? null;
  const other = calls.find(({ provider, model }) => provider !== first.provider || model !== first.model);
  const bounds = events.flatMap((event) =>
    event.type === 'TurnFailed' ? Number(MADE_CALLS.exec(event.data.message)?.[1] ?? NaN) : [],
  );
  const maxIterations = bounds.find((bound) => bound > 0) ?? Number.MAX_SAFE_INTEGER;
  return { ...choiceOf(first), fallback: other ? choiceOf(other) : null, maxIterations };
};

/** What drove the session when it decided this: its last record, which a call that begins may bring anew. */
export const policyAt = (
  recorded: SessionEvent,
  state: SessionState,
  inferred: TurnPolicy | null,
): TurnPolicy | null => {
  if (recorded.type === 'TurnFailed' && recorded.data.code === 'AGENT.NOT_FOUND') return null;
  const own = recorded.type === 'ModelCallStarted' ? recorded.data.policy : undefined;
  return own ?? state.policy ?? inferred;
};

const STATES = ['open', 'probing'] as const;

/**
 * Which providers may have been paused at this moment, likeliest first. Pauses are shared by all sessions and are no
 * facts of this one: a decision that follows from some of them is a decision that the rules allow.
 */
export const pausesAt = (recorded: SessionEvent, policy: TurnPolicy): readonly OpenCircuits[] => {
  if (recorded.type !== 'ModelCallStarted' && recorded.type !== 'TurnFailed') return [NO_OPEN_CIRCUITS];
  const said = recorded.type === 'TurnFailed' ? PAUSED_UNTIL.exec(recorded.data.message) : null;
  const providers = [...new Set([policy.provider, policy.fallback?.provider ?? policy.provider])];
  const pauseOf = (provider: string, state: OpenCircuit['state']): OpenCircuit => ({
    state,
    until: said?.[1] === provider ? (said[2] ?? '') : '',
  });
  const each = (provider: string): (readonly [string, OpenCircuit] | null)[] => [
    null,
    ...STATES.map((state) => [provider, pauseOf(provider, state)] as const),
  ];
  const [first, second] = providers.map(each);
  return (first ?? [null]).flatMap((a) =>
    (second ?? [null]).map((b) => new Map([a, b].filter((pause) => pause !== null))),
  );
};
