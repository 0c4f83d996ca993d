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
/** Maximum number of cached transcripts, and of UTF-16 units of each. */
const MAX_TRANSCRIPTS = 64;
const MAX_CHARS = 1024 * 1024;

/** A chat at a version, and the number of names that it had by then. */
interface ReadChat {
  readonly document: ChatDocument;
  readonly revision: number;
}

/** Reads chats: their names from the agent service, their messages from the log. */
export class ChatReader {
  readonly #requests: GatewayRequests;
  readonly #store: Pick<EventStore, 'readStreamPage'>;
  readonly #transcripts = createBoundedMap<ChatTranscript>(MAX_TRANSCRIPTS);

  constructor(requests: GatewayRequests, store: Pick<EventStore, 'readStreamPage'>) {
    this.#requests = requests;
    this.#store = store;
  }

  /**
   * Returns the chat with an id or a name. Each request asks for it: another gateway may have
   * renamed or deleted it. Throws `CHAT.NOT_FOUND` and `CHAT.DELETED`.
   */
  require(workspace: string, chat: string): Promise<ChatView> {
    return this.#requests.request(getChat, { workspace, chat });
  }

  /** Returns a chat at a version, by default the newest. Throws `CHAT.NO_VERSION`. */
  async read(workspace: string, chat: ChatView, at?: number): Promise<ReadChat> {
    const key = `${workspace}/${chat.sessionId}`;
    // An older version is read for this request alone: a transcript only goes forward.
    const cached = at === undefined ? this.#transcripts.get(key) : undefined;
    const own = cached ?? new ChatTranscript();
    await this.#readTo(workspace, chat.sessionId, own, at);
    if (at !== undefined && own.version < at)
      throw notFound('CHAT.NO_VERSION', `the chat has no version ${at}: the newest is ${own.version}`);
    if (at === undefined && own.chars <= MAX_CHARS) this.#transcripts.put(key, own);
    const named =
      at === undefined || chat.revision === 1
        ? chat
        : await this.#requests.request(getChat, { workspace, chat: chat.id, at });
    return { document: own.toDocument(named), revision: named.revision };
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
