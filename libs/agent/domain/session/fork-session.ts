import type { RecalledTurn, SessionEventOf } from '@antiphon/contracts/agent';
import type { PastTurn, RecentWindow, SessionState, TurnToolCall } from './session-state.js';

/** What a tool call of a what-if fails with when the origin's record has no outcome for it; the turn ends then. */
export const NOT_RECORDED = 'WHATIF.NOT_RECORDED';

type RecalledCall = RecalledTurn['steps'][number]['calls'][number];

const toRecalledCall = ({
  callId,
  providerCallId,
  name,
  input,
  status,
  content,
  isError,
}: TurnToolCall): RecalledCall => ({ callId, providerCallId, name, input, status, content, isError });

/** A turn that is over, as a fork takes it along. */
export const toRecalled = ({ turnId, content, steps, ending, note }: PastTurn): RecalledTurn => ({
  ...{ turnId, content, ending, note },
  steps: steps.map(({ text, provider, model, calls }) => ({
    ...{ text, provider, model },
    calls: calls.map(toRecalledCall),
  })),
});

const toPast = (turn: RecalledTurn): PastTurn => ({
  ...turn,
  steps: turn.steps.map((step) => ({
    ...step,
    calls: step.calls.map((call) => ({
      ...call,
      ...{ idempotent: false, idempotencyKey: '', claimed: false, tries: 0, approval: null },
      ...{ retry: null, timeoutMs: null, deferred: null },
    })),
  })),
});

/** A session that goes on from another one: it remembers that one's last turns, and counts its own attempts. */
export const forkState = (
  state: SessionState,
  { origin, purpose, choice, recent, remakes = [] }: SessionEventOf<'SessionForked'>['data'],
  window: RecentWindow,
): SessionState => ({
  ...state,
  recent: recent.map(toPast).slice(-window.turns),
  fork: {
    origin: { sessionId: origin.sessionId, version: origin.version },
    purpose,
    choice: choice ?? null,
    remakes: Object.fromEntries(remakes.map(({ turnId, of }) => [turnId, of])),
  },
});
