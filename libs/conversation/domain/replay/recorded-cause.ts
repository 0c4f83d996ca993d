import type { SessionEvent, TurnFailureCause } from '@antiphon/contracts/agent';

// Texts of `TurnFailed` events from before they recorded their causes. The log keeps that wording.
const PAUSED =
  /^provider (.+) is paused until (\S*) after failures in a row(?:; it last failed with: ([^]*))?$/;
const MADE_CALLS = /^the agent made (\d+) model calls without coming to an end \(max_iterations\)$/;
const UNKNOWN = /^the agent "([^]*)" is not configured any more$/;

type Read = (match: RegExpExecArray) => TurnFailureCause;

/** Forms of the texts by the error code of the turn. */
const FORMS: Readonly<Record<string, readonly [RegExp, Read]>> = {
  'PROVIDER.PAUSED': [
    PAUSED,
    ([, provider = '', until = '', lastError = null]) => ({
      ...{ kind: 'provider_paused', provider, until, lastError },
    }),
  ],
  'TURN.MAX_ITERATIONS': [MADE_CALLS, ([, limit]) => ({ kind: 'max_iterations', limit: Number(limit) })],
  'AGENT.TERMINATED': [/^the agent of this turn has ended$/, () => ({ kind: 'agent_ended' })],
  'AGENT.NOT_FOUND': [UNKNOWN, ([, agentId = '']) => ({ kind: 'agent_unknown', agentId })],
};

/**
 * Returns the cause of a recorded failure of a turn. An event without one has a text of a known
 * wording. Null for any other event, and for a failure of a provider or a tool.
 */
export const recordedCause = ({ type, data }: SessionEvent): TurnFailureCause | null => {
  if (type !== 'TurnFailed') return null;
  if (data.cause) return data.cause;
  const [form, read] = FORMS[data.code] ?? [];
  const match = form?.exec(data.message);
  return match && read ? read(match) : null;
};
