import {
  ChatTranscript,
  getChat,
  sessionStream,
  type ChatDocument,
  type ChatView,
  type SessionEvent,
} from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import type { EventStore } from '@antiphon/event-store';
import { createBoundedMap, notFound } from '@antiphon/kernel';
import type { Pool } from 'pg';
import { readDeletedParts } from '../frames/deleted-parts.js';
import type { GatewayRequests } from '../gateway.ports.js';

/** Bounds of one read. */
const PAGE = { limit: 1_000, maxBytes: 4 * 1024 * 1024 };
/** Maximum number of cached transcripts, and of UTF-16 units of each. */
const MAX_TRANSCRIPTS = 64;
const MAX_CHARS = 1024 * 1024;

/** Maximum number of chats whose ids are known. */
const MAX_PLACES = 10_000;

/** The part of a chat that never changes. */
export type ChatPlace = Pick<ChatView, 'id' | 'sessionId' | 'agentId'>;

/** Reads chats: their names from the agent service, their messages from the log. */
export class ChatReader {
  readonly #requests: GatewayRequests;
  readonly #store: Pick<EventStore, 'readStreamPage'>;
  readonly #pool: Pool;
  readonly #transcripts = createBoundedMap<ChatTranscript>(MAX_TRANSCRIPTS);
  readonly #places = createBoundedMap<ChatPlace>(MAX_PLACES);

  constructor(requests: GatewayRequests, store: Pick<EventStore, 'readStreamPage'>, pool: Pool) {
    this.#requests = requests;
    this.#store = store;
    this.#pool = pool;
  }

  /**
   * Returns the chat with an id or a name, with the name that it has, or had at a version. Each
   * request asks for it: another gateway may have renamed or deleted it. Throws `CHAT.NOT_FOUND`
   * and `CHAT.DELETED`.
   */
  require(workspace: string, chat: string, at?: number): Promise<ChatView> {
    return this.#requests.request(getChat, { workspace, chat, at });
  }

  /**
   * Returns the part of a chat that never changes. One whose id is known costs no request, also
   * after it was deleted: the append of a message refuses it then. Throws `CHAT.NOT_FOUND` and
   * `CHAT.DELETED`.
   */
  async requirePlace(workspace: string, chat: string): Promise<ChatPlace> {
    const known = this.#places.get(`${workspace}/${chat}`);
    if (known) return known;
    const { id, sessionId, agentId } = await this.require(workspace, chat);
    const place = { id, sessionId, agentId };
    this.#places.put(`${workspace}/${id}`, place);
    return place;
  }

  /**
   * Returns a chat at a version, by default the newest. Later deletions of messages apply there
   * too. Throws `CHAT.NO_VERSION`.
   */
  async read(workspace: string, chat: ChatView, at?: number): Promise<ChatDocument> {
    const key = `${workspace}/${chat.sessionId}`;
    const cached = this.#transcripts.get(key);
    if (at !== undefined && cached?.version === at) {
      await this.#hideDeleted(workspace, chat.sessionId, cached);
      return cached.toDocument(chat);
    }
    // A cached transcript goes forward with other requests: a version is read for this one alone.
    const own = (at === undefined ? cached : undefined) ?? new ChatTranscript();
    await this.#readTo(workspace, chat.sessionId, own, at);
    if (at !== undefined && own.version < at)
      throw notFound('CHAT.NO_VERSION', `the chat has no version ${at}: the newest is ${own.version}`);
    if (at !== undefined) await this.#hideDeleted(workspace, chat.sessionId, own);
    if (own.version > (cached?.version ?? 0) && own.chars <= MAX_CHARS) this.#transcripts.put(key, own);
    return own.toDocument(chat);
  }

  /** Deletes what was deleted at any later version too. */
  async #hideDeleted(workspace: string, sessionId: string, transcript: ChatTranscript): Promise<void> {
    const stream = sessionStream(sessionId);
    const db = inWorkspace(this.#pool, workspace);
    const deleted = await readDeletedParts(db, workspace, [stream]).catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
    for (const { turnId, part, at } of deleted.get(stream) ?? []) transcript.delete(turnId, part, at);
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
