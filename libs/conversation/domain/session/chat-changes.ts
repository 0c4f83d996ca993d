import type { SessionEventOf } from '@antiphon/contracts/agent';
import { clipText } from '@antiphon/kernel';
import { fitWindow } from './past-turns.js';
import type { PastTurn, RecentWindow, SessionState } from './session-state.js';

/** Text of a deleted answer in a context: vendors require an answer between two messages. */
const DELETED_ANSWER = '[deleted]';

const withAnswer = (turn: PastTurn, text: string): PastTurn => ({
  ...turn,
  received: [],
  steps: [{ text, provider: '', model: '', calls: [] }],
  note: '',
});

const changeRecent = (
  state: SessionState,
  turnId: string,
  window: RecentWindow,
  change: (turn: PastTurn) => PastTurn,
): SessionState => ({
  ...state,
  recent: fitWindow(
    state.recent.map((turn) => (turn.turnId === turnId ? change(turn) : turn)),
    window,
  ),
});

/** Applies an edit: later contexts have the new text. An edited answer has no tool calls. */
export const editMessage = (
  state: SessionState,
  { turnId, part, content }: SessionEventOf<'ChatMessageEdited'>['data'],
  window: RecentWindow,
): SessionState => {
  const text = clipText(content, window.chars);
  return changeRecent(state, turnId, window, (turn) =>
    part === 'message' ? { ...turn, content: text } : withAnswer(turn, text),
  );
};

/** Applies a deletion. An answer without its question is left out of later contexts too. */
export const deleteMessage = (
  state: SessionState,
  { turnId, part }: SessionEventOf<'ChatMessageDeleted'>['data'],
  window: RecentWindow,
): SessionState =>
  part === 'message'
    ? { ...state, recent: state.recent.filter((turn) => turn.turnId !== turnId) }
    : changeRecent(state, turnId, window, (turn) => withAnswer(turn, DELETED_ANSWER));

/** Applies an attachment: the newest snapshot of a path counts. */
export const attachFile = (
  state: SessionState,
  { path, digest, size, media }: SessionEventOf<'ChatFileAttached'>['data'],
): SessionState => {
  const file = { path, digest, size, ...(media ? { media } : {}) };
  const isKnown = state.attached.some((known) => known.path === path);
  return {
    ...state,
    attached: isKnown
      ? state.attached.map((known) => (known.path === path ? file : known))
      : [...state.attached, file],
  };
};

/** Applies the end of an attachment. */
export const detachFile = (
  state: SessionState,
  { path }: SessionEventOf<'ChatFileDetached'>['data'],
): SessionState => ({ ...state, attached: state.attached.filter((file) => file.path !== path) });
