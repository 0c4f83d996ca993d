import type pg from 'pg';
import { ChatCreated, chatStream } from '@antiphon/contracts/agent';
import type { ChatView } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import type { EventStore } from '@antiphon/event-store';
import { notFound } from '@antiphon/kernel';
import { chatIdOf } from '../derived-ids.js';

/** A chat with the position of its creation in the log. */
export interface ListedChat {
  readonly position: number;
  readonly chat: ChatView;
}

/** Converts the fact of a chat to its view. */
export const toChatView = ({
  chatId: id,
  name,
  path,
  agentId,
  role,
  sessionId,
  createdAt,
}: ChatCreated['data']): ChatView => ({
  ...{ id, name, path, is_virtual: true as const, agentId, role, sessionId, createdAt },
});

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const LIST_SQL = `select position, type, schema_version as "schemaVersion", data from events
  where workspace = $1 and type = 'ChatCreated' and position > $2 order by position limit $3`;

interface ChatRow {
  readonly position: string;
  readonly type: string;
  readonly schemaVersion: number;
  readonly data: Record<string, never>;
}

/** Reads the chats of a workspace from the log, so that a new chat is found at once. */
export class ChatStore {
  constructor(
    private readonly pool: pg.Pool,
    private readonly store: Pick<EventStore, 'readStream'>,
  ) {}

  /** Returns the chats after a position, oldest first. */
  async list(workspace: string, after: number, limit: number): Promise<ListedChat[]> {
    const query = { name: 'agent_chats', text: LIST_SQL, values: [workspace, after, limit] };
    const { rows } = await inWorkspace(this.pool, workspace)
      .query<ChatRow>(query)
      .catch((error: unknown) => {
        throw translateDatabaseError(error);
      });
    return rows.map(({ position, ...event }) => ({
      position: Number(position),
      chat: toChatView(ChatCreated.parse(upcast(event)).data),
    }));
  }

  /** Returns a chat; null if there is none with this id. */
  async find(workspace: string, chatId: string): Promise<ChatView | null> {
    const [created] = await this.store.readStream(workspace, chatStream(chatId), { limit: 1 });
    return created ? toChatView(ChatCreated.parse(upcast(created)).data) : null;
  }

  /** Returns the chat with a name; null if there is none. */
  findByName(workspace: string, name: string): Promise<ChatView | null> {
    return this.find(workspace, chatIdOf(workspace, name));
  }

  /** Returns the chat with an id or a name. Throws `CHAT.NOT_FOUND`. */
  async require(workspace: string, idOrName: string): Promise<ChatView> {
    const byId = UUID.test(idOrName) ? await this.find(workspace, idOrName) : null;
    const chat = byId ?? (await this.findByName(workspace, idOrName));
    if (chat) return chat;
    throw notFound('CHAT.NOT_FOUND', `there is no chat "${idOrName}"`);
  }
}
