import { ChatEvent, chatOfSessionKey, chatStream } from '@antiphon/contracts/agent';
import type { ChatCreated, ChatRenamed, ChatView } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { EventStore, RecordedEvent, StreamGuard } from '@antiphon/event-store';
import { notFound } from '@antiphon/kernel';

/** A chat, folded from its event stream. */
export interface ChatRecord {
  readonly chat: ChatView;
  readonly deletedAt: string | null;
}

/** Converts the creation of a chat to its view. */
export const toChatView = ({
  chatId: id,
  name,
  path,
  agentId,
  role,
  sessionId,
  createdAt,
  branchOf,
}: ChatCreated['data']): ChatView => ({
  ...{ id, name, path, is_virtual: true as const, agentId, role, sessionId, createdAt, revision: 1 },
  ...(branchOf ? { branchOf } : {}),
});

/** Returns a chat with the name of a later version. */
export const renameChat = (
  chat: ChatView,
  { name, path }: ChatRenamed['data'],
  revision: number,
): ChatView => ({
  ...{ ...chat, name, path, revision },
});

/** Folds the events of a chat; null without its creation. */
export const chatFold = {
  initialState: (): ChatRecord | null => null,
  evolve: (record: ChatRecord | null, { type, data }: ChatEvent): ChatRecord | null => {
    if (type === 'ChatCreated') return { chat: toChatView(data), deletedAt: null };
    if (!record) return null;
    if (type === 'ChatRenamed')
      return { ...record, chat: renameChat(record.chat, data, record.chat.revision + 1) };
    return type === 'ChatDeleted' ? { ...record, deletedAt: data.at } : record;
  },
};

const foldChat = (events: readonly RecordedEvent[]): ChatRecord | null =>
  events.reduce((record, event) => {
    const known = ChatEvent.safeParse(upcast(event));
    return known.success ? chatFold.evolve(record, known.data) : record;
  }, chatFold.initialState());

/** Returns the error of a request for a deleted chat. */
export const deletedChat = ({ id, name, sessionId }: ChatView, deletedAt: string): Error =>
  notFound(
    'CHAT.DELETED',
    `the chat "${name}" was deleted at ${deletedAt}. Its messages stay in the session ${sessionId}`,
    { data: { chatId: id, sessionId } },
  );

/**
 * Returns a guard that the chat of a session does not change before an append; null if the session
 * is of no chat. Throws `CHAT.DELETED` for a deleted chat, which takes no further messages.
 */
export const requireChatOfSession = async (
  store: Pick<EventStore, 'readStream'>,
  workspace: string,
  sessionKey: string,
): Promise<StreamGuard | null> => {
  const chatId = chatOfSessionKey(sessionKey);
  if (chatId === null) return null;
  const streamId = chatStream(chatId);
  const events = await store.readStream(workspace, streamId);
  const found = foldChat(events);
  if (found && found.deletedAt !== null) throw deletedChat(found.chat, found.deletedAt);
  return { streamId, version: events.at(-1)?.streamVersion ?? 0 };
};
