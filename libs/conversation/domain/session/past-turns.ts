import type { RecalledTurn, SessionEventOf, TurnEndStatus } from '@antiphon/contracts/agent';
import { clipText } from '@antiphon/kernel';
import { askedInputOf, withEditNote } from './edited-call.js';
import type {
  OpenTurn,
  PastTurn,
  RecentWindow,
  SessionState,
  TurnStep,
  TurnToolCall,
} from './session-state.js';

/**
 * Number of ended turns whose status is retained, to answer a late cancel without reading the log.
 */
const MAX_ENDED = 32;

const withoutState = ({
  providerState: _state,
  thought: _thought,
  keepsState: _keeps,
  ...step
}: TurnStep): TurnStep => step;

/** Clips the texts of a step. Most models want their state back in the open turn only. */
const clipStep = (step: TurnStep, max: number): TurnStep => ({
  ...(step.keepsState ? step : withoutState(step)),
  text: clipText(step.text, max),
  calls: step.calls.map((call) => ({ ...call, content: clipText(call.content, max) })),
});

const toPast = (turn: OpenTurn, ending: TurnEndStatus, failure: string, window: RecentWindow): PastTurn => ({
  turnId: turn.turnId,
  content: clipText(turn.content, window.chars),
  ...(turn.files ? { files: turn.files } : {}),
  received: turn.received,
  steps: turn.steps.map((step) => clipStep(step, window.chars)),
  ending,
  note: clipText(ending === 'cancelled' ? textWhenCancelled(turn) : failure, window.chars),
});

const textWhenCancelled = ({ tries }: OpenTurn): string => {
  const last = tries.at(-1);
  return last?.reason === 'cancelled' ? last.text : '';
};

/** Returns true if a turn is part of the conversation: it has a step, or partial text. */
const hasContent = (turn: PastTurn): boolean =>
  turn.steps.length > 0 || (turn.ending === 'cancelled' && turn.note !== '');

const sizeOf = (turn: PastTurn): number =>
  turn.steps.reduce(
    (sum, { text, calls, providerState = '', thought = '' }) =>
      sum +
      text.length +
      providerState.length +
      thought.length +
      calls.reduce((all, { content, input }) => all + content.length + jsonLength(input), 0),
    turn.content.length + turn.note.length + (turn.received.length > 0 ? jsonLength(turn.received) : 0),
  );

const jsonLength = (value: unknown): number => JSON.stringify(value)?.length ?? 0;

/**
 * Returns the newest turns that fit the window, at least the last one. The window moves in steps:
 * it grows by half of its turns, and is cut to its turns then. So the prompts of some turns begin
 * alike, and a vendor can cache that beginning.
 */
export const fitWindow = (turns: readonly PastTurn[], window: RecentWindow): readonly PastTurn[] => {
  const sizes = turns.map(sizeOf);
  let total = sizes.reduce((sum, size) => sum + size, 0);
  const most = window.turns + Math.ceil(window.turns / 2);
  if (turns.length < most && total <= window.chars) return turns;
  const chars = total > window.chars ? window.chars / 2 : window.chars;
  let from = 0;
  const isOver = (): boolean => turns.length - from > window.turns || total > chars;
  while (from < turns.length - 1 && isOver()) total -= sizes[from++] ?? 0;
  return turns.slice(from);
};

/** Ends an open or queued turn. After the open one, the next in the queue opens. */
export const closeTurn = (
  state: SessionState,
  turnId: string,
  ending: TurnEndStatus,
  failure: string,
  window: RecentWindow,
): SessionState => {
  const turn =
    state.open?.turnId === turnId ? state.open : state.queue.find((queued) => queued.turnId === turnId);
  const past = turn && toPast(turn, ending, failure, window);
  const queue = state.queue.filter((queued) => queued.turnId !== turnId);
  const promotes = state.open?.turnId === turnId;
  return {
    ...state,
    // As in the fold of frames: a turn that ends without an attempt takes a number too.
    attempt: state.attemptTurnId === turnId ? state.attempt : state.attempt + 1,
    attemptTurnId: null,
    open: promotes ? (queue[0] ?? null) : state.open,
    queue: promotes ? queue.slice(1) : queue,
    recent: past && hasContent(past) ? fitWindow([...state.recent, past], window) : state.recent,
    ended: [...state.ended, { turnId, status: ending }].slice(-MAX_ENDED),
  };
};

/** Error code of a what-if's tool call without an outcome in the origin's log; it ends the turn. */
export const NOT_RECORDED = 'WHATIF.NOT_RECORDED';

type RecalledCall = RecalledTurn['steps'][number]['calls'][number];

/** A fork recalls an edited call as its model saw it: the note is a part of its result then. */
const toRecalledCall = (call: TurnToolCall): RecalledCall => {
  const { callId, providerCallId, name, status, content, isError } = call;
  const seen = { input: askedInputOf(call), content: withEditNote(call, content) };
  return { callId, providerCallId, name, status, isError, ...seen };
};

/** Converts an ended turn to its form in a fork's event. */
export const toRecalled = ({ turnId, content, files, steps, ending, note }: PastTurn): RecalledTurn => ({
  ...{ turnId, content, ending, note },
  ...(files ? { files: [...files] } : {}),
  steps: steps.map(({ text, provider, model, calls, providerState, thought }) => ({
    ...{ text, provider, model },
    calls: calls.map(toRecalledCall),
    ...(providerState === undefined ? {} : { providerState, thought }),
  })),
});

const fromRecalled = ({ files, ...turn }: RecalledTurn): PastTurn => ({
  ...turn,
  ...(files ? { files } : {}),
  received: [],
  steps: turn.steps.map(({ providerState, thought, ...step }) => ({
    ...step,
    ...(providerState ? { providerState, keepsState: true } : {}),
    ...(providerState && thought !== undefined ? { thought } : {}),
    calls: step.calls.map((call) => ({
      ...call,
      ...{ idempotent: false, idempotencyKey: '', claimed: false, tries: 0, approval: null },
      ...{ retry: null, timeoutMs: null, deferred: null },
    })),
  })),
});

/** Applies a fork: retains the origin's last turns, and counts attempts from zero. */
export const forkState = (
  state: SessionState,
  { origin, purpose, choice, recent, remakes = [] }: SessionEventOf<'SessionForked'>['data'],
  window: RecentWindow,
): SessionState => ({
  ...state,
  recent: fitWindow(recent.map(fromRecalled), window),
  fork: {
    origin: { sessionId: origin.sessionId, version: origin.version },
    purpose,
    choice: choice ?? null,
    remakes: Object.fromEntries(remakes.map(({ turnId, of }) => [turnId, of])),
  },
});
