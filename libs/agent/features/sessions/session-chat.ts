import {
  ChatCreated,
  ChatDeleted,
  ChatRenamed,
  chatOfSessionKey,
  chatStream,
} from '@antiphon/contracts/agent';
import type { ChatView } from '@antiphon/contracts/agent';
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
}: ChatCreated['data']): ChatView => ({
  ...{ id, name, path, is_virtual: true as const, agentId, role, sessionId, createdAt, revision: 1 },
});

/** Returns a chat with the name of a later version. */
export const renameChat = (
  chat: ChatView,
  { name, path }: ChatRenamed['data'],
  revision: number,
): ChatView => ({
  ...{ ...chat, name, path, revision },
});

/** Folds the events of a chat up to a position of the log; null without its creation. */
export const foldChat = (events: readonly RecordedEvent[], until = Infinity): ChatRecord | null => {
  const [created, ...later] = events;
  if (!created || created.position > until) return null;
  let chat = toChatView(ChatCreated.parse(upcast(created)).data);
  let deletedAt: string | null = null;
  for (const event of later) {
    if (event.position > until) break;
    if (event.type === 'ChatRenamed')
      chat = renameChat(chat, ChatRenamed.parse(upcast(event)).data, event.streamVersion);
    if (event.type === 'ChatDeleted') deletedAt = ChatDeleted.parse(upcast(event)).data.at;
  }
  return { chat, deletedAt };
};

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
