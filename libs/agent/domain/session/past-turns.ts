import { clipText } from '../context/clip-text.js';
import type {
  OpenTurn,
  PastTurn,
  RecentWindow,
  SessionState,
  TurnEnding,
  TurnStep,
} from './session-state.js';

/** Endings remembered, to answer a late cancel without reading the log. */
const ENDED_KEPT = 32;

const clipStep = (step: TurnStep, max: number): TurnStep => ({
  ...step,
  text: clipText(step.text, max),
  calls: step.calls.map((call) => ({ ...call, content: clipText(call.content, max) })),
});

const toPast = (turn: OpenTurn, ending: TurnEnding, why: string, window: RecentWindow): PastTurn => ({
  turnId: turn.turnId,
  content: clipText(turn.content, window.chars),
  steps: turn.steps.map((step) => clipStep(step, window.chars)),
  ending,
  note: clipText(ending === 'cancelled' ? writtenWhenCancelled(turn) : why, window.chars),
});

const writtenWhenCancelled = ({ tries }: OpenTurn): string => {
  const last = tries.at(-1);
  return last?.reason === 'cancelled' ? last.text : '';
};

/** A turn that left nothing behind is not part of the conversation: no answer, no tool that ran. */
const leftSomething = (turn: PastTurn): boolean =>
  turn.steps.length > 0 || (turn.ending === 'cancelled' && turn.note !== '');

const sizeOf = (turn: PastTurn): number =>
  turn.steps.reduce(
    (sum, { text, calls }) =>
      sum +
      text.length +
      calls.reduce((all, { content, input }) => all + content.length + jsonLength(input), 0),
    turn.content.length + turn.note.length,
  );

const jsonLength = (value: unknown): number => JSON.stringify(value)?.length ?? 0;

/** The newest turns that fit the window, at least the last one. */
const within = (turns: readonly PastTurn[], window: RecentWindow): readonly PastTurn[] => {
  const kept = turns.slice(-window.turns);
  const sizes = kept.map(sizeOf);
  let total = sizes.reduce((sum, size) => sum + size, 0);
  let from = 0;
  while (from < kept.length - 1 && total > window.chars) total -= sizes[from++] ?? 0;
  return kept.slice(from);
};

/** Ends a turn, wherever it stands; the next in the queue is open then. */
export const closeTurn = (
  state: SessionState,
  turnId: string,
  ending: TurnEnding,
  why: string,
  window: RecentWindow,
): SessionState => {
  const turn =
    state.open?.turnId === turnId ? state.open : state.queue.find((queued) => queued.turnId === turnId);
  const past = turn && toPast(turn, ending, why, window);
  const queue = state.queue.filter((queued) => queued.turnId !== turnId);
  const promotes = state.open?.turnId === turnId;
  return {
    ...state,
    // As in the fold of frames: a turn that ends without an attempt takes a number of its own.
    attempt: state.attemptTurnId === turnId ? state.attempt : state.attempt + 1,
    attemptTurnId: null,
    open: promotes ? (queue[0] ?? null) : state.open,
    queue: promotes ? queue.slice(1) : queue,
    recent: past && leftSomething(past) ? within([...state.recent, past], window) : state.recent,
    ended: [...state.ended, { turnId, status: ending }].slice(-ENDED_KEPT),
  };
};
