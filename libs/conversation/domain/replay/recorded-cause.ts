import type { SessionEvent } from '@antiphon/contracts/agent';
import type { Cause } from '@antiphon/contracts/causes';

// Texts of `TurnFailed` events from before they recorded their causes. The log keeps that wording.
const PAUSED =
  /^provider (.+) is paused until (\S*) after failures in a row(?:; it last failed with: ([^]*))?$/;
const MADE_CALLS = /^the agent made (\d+) model calls without coming to an end \(max_iterations\)$/;
const UNKNOWN = /^the agent "([^]*)" is not configured any more$/;

type Read = (match: RegExpExecArray) => Cause;

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
 * Returns the cause of a recorded failure of a turn, and null for any other event. An event from
 * before causes has a text of a known wording.
 */
export const recordedCause = ({ type, data }: SessionEvent): Cause | null => {
  if (type !== 'TurnFailed') return null;
  const { code, cause } = data;
  const [form, read] = FORMS[code] ?? [];
  const match = cause.kind === 'text' ? form?.exec(cause.text) : null;
  return match && read ? read(match) : cause;
};
