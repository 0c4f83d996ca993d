import {
  ChatTranscript,
  getChat,
  sessionStream,
  type ChatDocument,
  type ChatView,
  type SessionEvent,
} from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { EventStore } from '@antiphon/event-store';
import { createBoundedMap, notFound } from '@antiphon/kernel';
import type { GatewayRequests } from '../gateway.ports.js';

/** Bounds of one read. */
const PAGE = { limit: 1_000, maxBytes: 4 * 1024 * 1024 };
const MAX_CHATS = 10_000;
/** Maximum number of cached transcripts, and of UTF-16 units of each. */
const MAX_TRANSCRIPTS = 64;
const MAX_CHARS = 1024 * 1024;

/** Reads chats: their names from the agent service, their messages from the log. */
export class ChatReader {
  readonly #requests: GatewayRequests;
  readonly #store: Pick<EventStore, 'readStreamPage'>;
  /** A chat never changes: its messages are in its session. */
  readonly #chats = createBoundedMap<ChatView>(MAX_CHATS);
  readonly #transcripts = createBoundedMap<ChatTranscript>(MAX_TRANSCRIPTS);

  constructor(requests: GatewayRequests, store: Pick<EventStore, 'readStreamPage'>) {
    this.#requests = requests;
    this.#store = store;
  }

  /** Returns the chat with an id or a name. Throws `CHAT.NOT_FOUND`. */
  async require(workspace: string, idOrName: string): Promise<ChatView> {
    const key = `${workspace}/${idOrName}`;
    const known = this.#chats.get(key);
    if (known) return known;
    const chat = await this.#requests.request(getChat, { workspace, chat: idOrName });
    this.#chats.put(key, chat);
    return chat;
  }

  /** Returns a chat at a version, by default the newest. Throws `CHAT.NO_VERSION`. */
  async read(workspace: string, chat: ChatView, at?: number): Promise<ChatDocument> {
    const key = `${workspace}/${chat.sessionId}`;
    // An older version is read for this request alone: a transcript only goes forward.
    const cached = at === undefined ? this.#transcripts.get(key) : undefined;
    const own = cached ?? new ChatTranscript();
    await this.#readTo(workspace, chat.sessionId, own, at);
    if (at !== undefined && own.version < at)
      throw notFound('CHAT.NO_VERSION', `the chat has no version ${at}: the newest is ${own.version}`);
    if (at === undefined && own.chars <= MAX_CHARS) this.#transcripts.put(key, own);
    return own.toDocument(chat);
  }

  async #readTo(
    workspace: string,
    sessionId: string,
    transcript: ChatTranscript,
    at: number | undefined,
  ): Promise<void> {
    const bound = at === undefined ? {} : { beforeVersion: at + 1 };
    for (let hasMore = true; hasMore;) {
      const options = { fromVersion: transcript.version + 1, ...bound, ...PAGE };
      const page = await this.#store.readStreamPage(workspace, sessionStream(sessionId), options);
      // Events were validated when they were appended. An unknown type changes no message.
      for (const recorded of page.events)
        transcript.apply(upcast(recorded) as unknown as SessionEvent, recorded.streamVersion);
      hasMore = page.hasMore;
    }
  }
}
