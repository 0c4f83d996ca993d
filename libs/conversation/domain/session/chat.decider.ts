import type { SessionEvent } from '@antiphon/contracts/agent';
import { rejected } from '@antiphon/kernel';
import type {
  AttachFile,
  DeleteMessage,
  DetachFile,
  EditMessage,
  SessionCommand,
} from './session-command.js';
import type { SessionState } from './session-state.js';

/** Command that changes the messages or the attached files of a chat. */
export type ChatCommand = EditMessage | DeleteMessage | AttachFile | DetachFile;

const TYPES: ReadonlySet<string> = new Set(['EditMessage', 'DeleteMessage', 'AttachFile', 'DetachFile']);

export const isChatCommand = (command: SessionCommand): command is ChatCommand => TYPES.has(command.type);

/** Maximum number of files that a session refers to. */
export const MAX_ATTACHED = 100;

const schemaVersion = 1;

/** An open turn works with the text that it was asked with: only ended turns may change. */
const requireEnded = ({ open, queue }: SessionState, turnId: string): void => {
  if (![open, ...queue].some((turn) => turn?.turnId === turnId)) return;
  throw rejected(
    'CHAT.TURN_OPEN',
    'a message of a turn that runs or waits cannot be changed: cancel it first',
  );
};

const attach = ({ data, now }: AttachFile, { attached }: SessionState): SessionEvent[] => {
  const known = attached.find(({ path }) => path === data.path);
  // The facts of an image or a document are missing in older events.
  if (known?.digest === data.digest && (known.media || !data.media)) return [];
  if (!known && attached.length >= MAX_ATTACHED)
    throw rejected('CHAT.TOO_MANY_FILES', `a chat refers to at most ${MAX_ATTACHED} files`);
  return [{ type: 'ChatFileAttached', schemaVersion, data: { ...data, at: now } }];
};

/** A repeat adds no fact. */
const detach = ({ data, now }: DetachFile, { attached }: SessionState): SessionEvent[] =>
  attached.some(({ path }) => path === data.path)
    ? [{ type: 'ChatFileDetached', schemaVersion, data: { ...data, at: now } }]
    : [];

/** Decides a change of a chat. Throws `CHAT.TURN_OPEN` and `CHAT.TOO_MANY_FILES`. */
export const decideChatChange = (command: ChatCommand, state: SessionState): SessionEvent[] => {
  if (!state.started) throw rejected('SESSION.NOT_STARTED', 'the session has not started');
  if (command.type === 'AttachFile') return attach(command, state);
  if (command.type === 'DetachFile') return detach(command, state);
  requireEnded(state, command.data.turnId);
  if (command.type === 'EditMessage')
    return [{ type: 'ChatMessageEdited', schemaVersion, data: { ...command.data, at: command.now } }];
  return [{ type: 'ChatMessageDeleted', schemaVersion, data: { ...command.data, at: command.now } }];
};
