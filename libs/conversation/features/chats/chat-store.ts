import type pg from 'pg';
import { ChatCreated, ChatEvent, chatNameStream, chatStream, sessionStream } from '@antiphon/contracts/agent';
import type { ChatRenamed, ChatView, FamilyChat, SessionEventOf } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import { AggregateStore } from '@antiphon/event-store';
import type { AppendDecision, Committed, EventStore, StreamAppend } from '@antiphon/event-store';
import { notFound } from '@antiphon/kernel';
import type { Ids } from '@antiphon/kernel';
import { chatIdOf, eventForms } from '@antiphon/agent-log';
import { chatFold, deletedChat, renameChat, toChatView } from '../sessions/session-chat.js';
import type { ChatRecord } from '../sessions/session-chat.js';

/** A chat with the position of its creation in the log. */
export interface ListedChat {
  readonly position: number;
  readonly chat: ChatView;
}

/** A part of a turn that a person deleted. */
export type DeletedPart = Pick<SessionEventOf<'ChatMessageDeleted'>['data'], 'turnId' | 'part' | 'at'>;

/** Chat that a name belongs to. */
interface NameState {
  /** Null if the name is free. */
  readonly chatId: string | null;
  /** Last chat with this name, which may be deleted. */
  readonly lastChatId: string | null;
}

export interface NameBinding extends NameState {
  /** Version of the name's event stream, 0 if the name was never taken. */
  readonly version: number;
}

const nameFold = {
  initialState: (): NameState => ({ chatId: null, lastChatId: null }),
  evolve: (_before: NameState, { type, data }: ChatEvent): NameState => ({
    chatId: type === 'ChatNameTaken' ? data.chatId : null,
    lastChatId: data.chatId,
  }),
};

type ChatNameEvent = Extract<ChatEvent, { type: 'ChatNameTaken' | 'ChatNameFreed' }>;

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const LIST_SQL = `select c.position, c.type, c.schema_version as "schemaVersion", c.data,
    r.data as renamed, r.stream_version as revision
  from events c left join lateral (
    select n.data, n.stream_version from events n
    where n.workspace = c.workspace and n.stream_id = c.stream_id and n.type = 'ChatRenamed' and n.position <= $4
    order by n.stream_version desc limit 1) r on true
  where c.workspace = $1 and c.type = 'ChatCreated' and c.position > $2 and c.position <= $4 and not exists (
    select from events d where d.workspace = c.workspace and d.stream_id = c.stream_id and d.type = 'ChatDeleted'
      and d.position <= $4)
  order by c.position limit $3`;
/** Chats of one family: the first chat, and the branches that name it. */
const FAMILY_SQL = `select c.position, c.type, c.schema_version as "schemaVersion", c.data,
    r.data as renamed, r.stream_version as revision
  from events c left join lateral (
    select n.data, n.stream_version from events n
    where n.workspace = c.workspace and n.stream_id = c.stream_id and n.type = 'ChatRenamed' and n.position <= $4
    order by n.stream_version desc limit 1) r on true
  where c.workspace = $1 and c.type = 'ChatCreated' and c.position <= $4
    and (c.stream_id = $2 or c.data #>> '{branchOf,rootChatId}' = $3) and not exists (
    select from events d where d.workspace = c.workspace and d.stream_id = c.stream_id and d.type = 'ChatDeleted'
      and d.position <= $4)
  order by c.position limit 1000`;
/** Chats by their streams. */
const BY_IDS_SQL = `select c.position, c.type, c.schema_version as "schemaVersion", c.data,
    r.data as renamed, r.stream_version as revision
  from events c left join lateral (
    select n.data, n.stream_version from events n
    where n.workspace = c.workspace and n.stream_id = c.stream_id and n.type = 'ChatRenamed' and n.position <= $3
    order by n.stream_version desc limit 1) r on true
  where c.workspace = $1 and c.stream_id = any($2) and c.stream_version = 1 and c.type = 'ChatCreated'
    and c.position <= $3`;
// The streams are named: under a policy, a concatenation reaches no index.
const TURNS_SQL = `select stream_id, count(*) as turns from events
  where workspace = $1 and stream_id = any($2) and type = 'TurnRequested' and position <= $3 group by 1`;
const VERSION_SQL = `select stream_version as version from events
  where workspace = $1 and stream_id = $2 and position <= $3 order by stream_version desc limit 1`;
const DELETED_SQL = `select stream_id, data ->> 'turnId' as "turnId", data ->> 'part' as part, data ->> 'at' as at
  from events where workspace = $1 and stream_id = any($2) and type = 'ChatMessageDeleted'`;
const HEADS_SQL = 'select stream_id, version from stream_heads where workspace = $1 and stream_id = any($2)';

/** Position after every event. */
const NOW = Number.MAX_SAFE_INTEGER;

interface ChatRow {
  readonly position: string;
  readonly type: string;
  readonly schemaVersion: number;
  readonly data: Record<string, never>;
  readonly renamed: ChatRenamed['data'] | null;
  readonly revision: string | null;
}

const chatOfRow = ({ type, schemaVersion, data, renamed, revision }: ChatRow): ChatView => {
  const created = toChatView(ChatCreated.parse(upcast({ type, schemaVersion, data })).data);
  return renamed === null ? created : renameChat(created, renamed, Number(revision));
};

/** Reads the chats of a workspace from the log, so that a change is visible at once. */
export class ChatStore {
  private readonly chats: AggregateStore<ChatRecord | null, ChatEvent>;
  private readonly names: AggregateStore<NameState, ChatEvent>;

  constructor(
    private readonly pool: pg.Pool,
    private readonly store: Pick<EventStore, 'readStream' | 'append'>,
    ids: Ids,
  ) {
    const shared = { store, ...eventForms(ChatEvent, ids, null) };
    const streamOf = (_workspace: string, id: string): string => chatStream(id);
    // A caller finds the chat of a name again before it decides again.
    this.chats = new AggregateStore({ ...shared, streamOf, decider: chatFold, maxRounds: 1 });
    this.names = new AggregateStore({
      ...{ ...shared, decider: nameFold, reads: 'last' },
      streamOf: (workspace, name) => chatNameStream(chatIdOf(workspace, name)),
    });
  }

  /** Appends the first event of a chat. Conflicts if there is one with this id. */
  create(
    workspace: string,
    data: ChatCreated['data'],
    more: Omit<AppendDecision<ChatEvent>, 'events'>,
  ): Promise<Committed<ChatRecord | null>> {
    const created: ChatCreated = { type: 'ChatCreated', schemaVersion: 1, data };
    const decision = { events: [created], ...more };
    return this.chats.commit(workspace, data.chatId, () => decision, { state: null, version: 0 });
  }

  /** Appends a change of a chat. Conflicts unless the chat has this revision. */
  change(
    workspace: string,
    chat: ChatView,
    event: ChatEvent,
    also: readonly StreamAppend[],
  ): Promise<Committed<ChatRecord | null>> {
    const known = { state: { chat, deletedAt: null }, version: chat.revision };
    return this.chats.commit(workspace, chat.id, () => ({ events: [event], also }), known);
  }

  /** Returns the append that gives a name to a chat, or frees it. Conflicts if the name changed. */
  nameAppend(workspace: string, { version }: NameBinding, event: ChatNameEvent): StreamAppend {
    return this.names.appendOf(workspace, event.data.name, version, [event]);
  }

  /**
   * Returns the chats after a position, oldest first, without deleted ones: the current ones, or
   * those of a position of the log.
   */
  async list(workspace: string, after: number, limit: number, until = NOW): Promise<ListedChat[]> {
    const rows = await this.query<ChatRow>('agent_chats', LIST_SQL, [workspace, after, limit, until]);
    return rows.map((row) => ({ position: Number(row.position), chat: chatOfRow(row) }));
  }

  /** Returns chats by their ids, also deleted ones. */
  async listByIds(
    workspace: string,
    ids: readonly string[],
    until = NOW,
  ): Promise<ReadonlyMap<string, ChatView>> {
    if (ids.length === 0) return new Map();
    const values = [workspace, ids.map(chatStream), until] as const;
    const rows = await this.query<ChatRow>('agent_chats_by_ids', BY_IDS_SQL, values);
    return new Map(rows.map((row) => chatOfRow(row)).map((chat) => [chat.id, chat]));
  }

  /** Returns the first chat of a family and all its branches, oldest first, without deleted ones. */
  async listFamily(workspace: string, rootChatId: string, until = NOW): Promise<FamilyChat[]> {
    const values = [workspace, chatStream(rootChatId), rootChatId, until] as const;
    const chats = (await this.query<ChatRow>('agent_chat_family', FAMILY_SQL, values)).map(chatOfRow);
    const streams = chats.map(({ sessionId }) => sessionStream(sessionId));
    type Row = { stream_id: string; turns: string };
    const rows = await this.query<Row>('agent_chat_turns', TURNS_SQL, [workspace, streams, until]);
    const turns = new Map(rows.map((row) => [row.stream_id, Number(row.turns)]));
    return chats.map((chat) => ({ ...chat, turns: turns.get(sessionStream(chat.sessionId)) ?? 0 }));
  }

  /** Returns a chat, also a deleted one; null if there is none with this id. */
  async read(workspace: string, chatId: string, until?: number): Promise<ChatRecord | null> {
    return (await this.chats.read(workspace, chatId, until)).state;
  }

  /** Returns the chat that a name belongs to, or belonged to at a position of the log. */
  async readName(workspace: string, name: string, until?: number): Promise<NameBinding> {
    const { state, version } = await this.names.read(workspace, name, until);
    if (version > 0) return { ...state, version };
    // The first chats had no stream for their names: their ids alone made the names unique.
    const id = chatIdOf(workspace, name);
    const chatId = (await this.read(workspace, id, until)) ? id : null;
    return { version, chatId, lastChatId: chatId };
  }

  /** Returns the chat with a name, now or at a position of the log; null if there is none. */
  async findByName(workspace: string, name: string, until?: number): Promise<ChatView | null> {
    const { chatId } = await this.readName(workspace, name, until);
    const found = chatId === null ? null : await this.read(workspace, chatId, until);
    return found && found.deletedAt === null ? found.chat : null;
  }

  /**
   * Returns the chat with an id or a name, also the last deleted one. Throws `CHAT.NOT_FOUND`.
   */
  async requireRecord(workspace: string, idOrName: string): Promise<ChatRecord> {
    const byId = UUID.test(idOrName) ? await this.read(workspace, idOrName) : null;
    if (byId) return byId;
    const { lastChatId } = await this.readName(workspace, idOrName);
    const found = lastChatId === null ? null : await this.read(workspace, lastChatId);
    // A name that its chat gave up belongs to no chat.
    if (found && chatIdOf(workspace, found.chat.name) === chatIdOf(workspace, idOrName)) return found;
    throw notFound('CHAT.NOT_FOUND', `there is no chat "${idOrName}"`);
  }

  /** Returns the chat with an id or a name. Throws `CHAT.NOT_FOUND` and `CHAT.DELETED`. */
  async require(workspace: string, idOrName: string): Promise<ChatView> {
    const { chat, deletedAt } = await this.requireRecord(workspace, idOrName);
    if (deletedAt === null) return chat;
    throw deletedChat(chat, deletedAt);
  }

  /** Returns the version that a session had at a position of the log; 0 before it began. */
  async versionAt(workspace: string, sessionId: string, position: number): Promise<number> {
    const values = [workspace, sessionStream(sessionId), position] as const;
    const [row] = await this.query<{ version: string }>('agent_chat_version', VERSION_SQL, values);
    return Number(row?.version ?? 0);
  }

  /** Returns the versions of sessions, by id. */
  async versionsOf(workspace: string, sessionIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    type Row = { stream_id: string; version: string };
    const values = [workspace, sessionIds.map(sessionStream)] as const;
    const rows = await this.query<Row>('agent_chat_heads', HEADS_SQL, values);
    const versions = new Map(rows.map((row) => [row.stream_id, Number(row.version)]));
    return new Map(sessionIds.map((id) => [id, versions.get(sessionStream(id)) ?? 0]));
  }

  /** Returns the parts of sessions that were deleted at any version, by session. */
  async deletionsOf(
    workspace: string,
    sessionIds: readonly string[],
  ): Promise<ReadonlyMap<string, readonly DeletedPart[]>> {
    type Row = DeletedPart & { stream_id: string };
    const values = [workspace, sessionIds.map(sessionStream)] as const;
    const rows = await this.query<Row>('agent_chat_deletions', DELETED_SQL, values);
    const parts = Map.groupBy(rows, (row) => row.stream_id);
    return new Map(sessionIds.map((id) => [id, parts.get(sessionStream(id)) ?? []] as const));
  }

  /** Returns a chat with the name that it had at a version of its session. */
  async atVersion(workspace: string, chat: ChatView, version: number): Promise<ChatView> {
    if (chat.revision === 1) return chat;
    const options = { fromVersion: version, limit: 1 };
    const [event] = await this.store.readStream(workspace, sessionStream(chat.sessionId), options);
    const then = event ? await this.read(workspace, chat.id, event.position) : null;
    return then?.chat ?? chat;
  }

  private async query<Row extends pg.QueryResultRow>(
    name: string,
    text: string,
    values: readonly [string, ...unknown[]],
  ): Promise<Row[]> {
    try {
      const query = { name, text, values: [...values] };
      return (await inWorkspace(this.pool, values[0]).query<Row>(query)).rows;
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }
}
