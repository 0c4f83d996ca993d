import type { SessionEvent, TurnPolicy } from '@antiphon/contracts/agent';
import { NO_OPEN_CIRCUITS } from '@antiphon/providers-domain';
import type { OpenCircuit, OpenCircuits } from '@antiphon/providers-domain';
import type { SessionState } from '../session/session-state.js';
import type { ModelChoice } from '../turn/step.js';
import { recordedCause } from './recorded-cause.js';

const toChoice = ({ provider, model }: ModelChoice): ModelChoice => ({ provider, model });

/** Returns the choice of a session without any model call: the provider whose circuit was open. */
const openCircuitChoice = (events: readonly SessionEvent[]): ModelChoice | null => {
  const [provider] = events.flatMap((event) => {
    const cause = recordedCause(event);
    return cause?.kind === 'provider_paused' ? [cause.provider] : [];
  });
  return provider === undefined ? null : { provider, model: '' };
};

/**
 * Infers the policy of decisions from before the log recorded policies. Returns the first recorded
 * policy. Without one, combines the first model choice, another one as its fallback, and the limit
 * of model calls that a turn exceeded.
 */
export const inferPolicy = (events: readonly SessionEvent[]): TurnPolicy | null => {
  const calls = events.flatMap((event) => (event.type === 'ModelCallStarted' ? [event.data] : []));
  const recorded = calls.find(({ policy }) => policy)?.policy;
  const first = calls[0] ?? openCircuitChoice(events);
  if (recorded || !first) return recorded ?? null;
  const other = calls.find(({ provider, model }) => provider !== first.provider || model !== first.model);
  const bounds = events.flatMap((event) => {
    const cause = recordedCause(event);
    return cause?.kind === 'max_iterations' ? [cause.limit] : [];
  });
  const maxIterations = bounds.find((bound) => bound > 0) ?? Number.MAX_SAFE_INTEGER;
  return { ...toChoice(first), fallback: other ? toChoice(other) : null, maxIterations };
};

/**
 * Returns the policy of a recorded decision: the last recorded one, which a started call may
 * replace.
 */
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
 * Returns the combinations of open circuits that were possible at a decision, likeliest first.
 * Circuits are shared by all sessions, so a session's log does not record them. A decision that
 * follows from one of the combinations is valid.
 */
export const possibleCircuits = (recorded: SessionEvent, policy: TurnPolicy): readonly OpenCircuits[] => {
  if (recorded.type !== 'ModelCallStarted' && recorded.type !== 'TurnFailed') return [NO_OPEN_CIRCUITS];
  const cause = recordedCause(recorded);
  const stated = cause?.kind === 'provider_paused' ? cause : null;
  const providers = [...new Set([policy.provider, policy.fallback?.provider ?? policy.provider])];
  const toCircuit = (provider: string, state: OpenCircuit['state']): OpenCircuit => ({
    state,
    until: stated?.provider === provider ? stated.until : '',
  });
  const variants = (provider: string): (readonly [string, OpenCircuit] | null)[] => [
    null,
    ...STATES.map((state) => [provider, toCircuit(provider, state)] as const),
  ];
  const [first, second] = providers.map(variants);
  return (first ?? [null]).flatMap((a) =>
    (second ?? [null]).map((b) => new Map([a, b].filter((circuit) => circuit !== null))),
  );
};
