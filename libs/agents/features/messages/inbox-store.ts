import type pg from 'pg';
import { AgentMessage, agentInboxStream, agentStream, agentTopicStream } from '@antiphon/contracts/agent';
import {
  acrossWorkspaces,
  cutListPage,
  inWorkspace,
  listPageSql,
  translateDatabaseError,
} from '@antiphon/database';
import type { ListedRow, ListPage } from '@antiphon/database';
import { agentUuidOf, topicUuidOf } from '@antiphon/agent-log';

/** Topic of the messages to every agent of a workspace. */
export const EVERYONE = 'everyone';

/** An inbox without its messages: the cursor, and the topics that it follows. */
export interface InboxState {
  readonly streamId: string;
  readonly version: number;
  /** Position of the log up to which the agent has read. */
  readonly upTo: number;
  /** Position of the agent's first event; messages to everyone before it are not its own. */
  readonly since: number;
  /** Position from which each topic is followed. */
  readonly topics: ReadonlyMap<string, number>;
}

/** A message with its position in the log. */
export interface StoredMessage {
  readonly position: number;
  readonly message: AgentMessage;
}

interface StateRow {
  readonly version: string;
  readonly up_to: string;
  readonly since: string;
  readonly topics: readonly { readonly topic: string; readonly position: number }[];
}
interface MessageRow {
  readonly position: string;
  readonly data: unknown;
}

// The limits let the planner read by the index of messages, also in a table without statistics.
const STATE_SQL = `select
  coalesce((select version from stream_heads where workspace = $1 and stream_id = $2), 0) as version,
  coalesce((select (data ->> 'upTo')::bigint from events
    where workspace = $1 and stream_id = $2 and type = 'InboxRead' and position <= $4
    order by position desc limit 1), 0) as up_to,
  coalesce((select position from events
    where workspace = $1 and stream_id = $3 and stream_version = 1 and position <= $4), 0) as since,
  (select coalesce(jsonb_agg(jsonb_build_object('topic', topic, 'position', position)), '[]'::jsonb)
    from (select distinct on (topic) topic, type, position from (
        (select data ->> 'topic' as topic, type, position from events
          where workspace = $1 and stream_id = $2 and type = 'TopicSubscribed' and position <= $4
          order by position desc limit 10000)
        union all
        (select data ->> 'topic' as topic, type, position from events
          where workspace = $1 and stream_id = $2 and type = 'TopicUnsubscribed' and position <= $4
          order by position desc limit 10000)) changes
      order by topic, position desc) newest
    where type = 'TopicSubscribed') as topics`;

// Each stream is read after its own position, so that the cost does not depend on its length. The
// expression of the type selects the index of one stream's messages, also in a table without
// statistics. An agent does not read what it published itself.
const AFTER_SQL = `select m.position, m.data
  from unnest($2::text[], $3::bigint[]) as s (stream_id, after)
  cross join lateral (
    select e.position, e.data from events e
    where e.workspace = $1 and e.stream_id = s.stream_id and (e.type || '') = 'AgentMessageSent'
      and e.position > s.after and (s.stream_id = $5 or e.data ->> 'from' <> $6)
    order by e.position limit $4) m
  order by m.position limit $4`;
const NEWEST_SQL = listPageSql(
  `select m.position, m.data
  from unnest($2::text[], $3::bigint[]) as s (stream_id, after)
  cross join lateral (
    select e.position, e.data from events e
    where e.workspace = $1 and e.stream_id = s.stream_id and (e.type || '') = 'AgentMessageSent'
      and e.position > s.after and ($5::bigint is null or e.position < $5)
    order by e.position desc limit $4::bigint + $6::bigint) m
  order by m.position desc limit $4 offset $6`,
  'octet_length(r.data::text)',
);
/** The read mark of an inbox is the newest `InboxRead` of its stream. */
const ALL_SQL = listPageSql(
  `select e.position, e.data, case when e.data -> 'to' ->> 'kind' = 'agent' then e.position <= coalesce((
      select (r.data ->> 'upTo')::bigint from events r where r.workspace = e.workspace and r.stream_id = e.stream_id
        and r.type = 'InboxRead' and r.position <= $4 order by r.position desc limit 1), 0) end as is_read
  from events e
  where e.workspace = $1 and e.type = 'AgentMessageSent' and e.position <= $4
    and ($3::bigint is null or e.position < $3)
    and ($5::text is null or e.data ->> 'from' = 'agent/' || $5 or e.data -> 'to' ->> 'agentId' = $5)
    and ($6::text is null or e.data -> 'to' ->> 'topic' = $6
      or ($6 = '${EVERYONE}' and e.data -> 'to' ->> 'kind' = '${EVERYONE}'))
    and ($7::text is null or e.data ->> 'type' = $7)
    and ($8::text is null or e.data ->> 'causeId' = $8)
  order by e.position desc limit $2`,
  'octet_length(r.data::text)',
);
const TAIL_SQL = `select position, workspace, stream_id from events
  where type = 'AgentMessageSent' and position > $1 order by position limit $2`;
const HEAD_SQL = `select coalesce(max(position), 0) as position from events where type = 'AgentMessageSent'`;

/** Bounds of a page of messages. */
export interface NewestMessages {
  readonly limit: number;
  /** Position before which they are. Default: any. */
  readonly before?: number | null;
  readonly offset?: number;
}

/** Messages of a workspace that a list shows. */
export interface MessageQuery {
  readonly limit: number;
  readonly before: number | null;
  readonly upTo: number;
  readonly agent: string | null;
  readonly topic: string | null;
  readonly type: string | null;
  readonly cause: string | null;
}

/** A new message in the log, as a process follows them. */
export interface NewMessage {
  readonly position: number;
  readonly workspace: string;
  readonly streamId: string;
}

const toStored = ({ position, data }: MessageRow): StoredMessage => ({
  position: Number(position),
  message: AgentMessage.parse(data),
});

/** Reads inboxes from the log. There are no rows of them besides their events. */
export class InboxStore {
  constructor(private readonly pool: pg.Pool) {}

  /** Returns the inbox now, or with its cursor and topics as of a position of the log. */
  async readState(workspace: string, agentId: string, upTo = Number.MAX_SAFE_INTEGER): Promise<InboxState> {
    const uuid = agentUuidOf(workspace, agentId);
    const streamId = agentInboxStream(uuid);
    const query = { name: 'agent_inbox_state', text: STATE_SQL };
    const [row] = await this.query<StateRow>(workspace, query, [streamId, agentStream(uuid), upTo]);
    return {
      streamId,
      version: Number(row?.version ?? 0),
      upTo: Number(row?.up_to ?? 0),
      since: Number(row?.since ?? 0),
      topics: new Map(row?.topics.map(({ topic, position }) => [topic, position])),
    };
  }

  /** Returns the messages after the cursor, oldest first. */
  async readUnread(
    workspace: string,
    agentId: string,
    state: InboxState,
    limit: number,
  ): Promise<StoredMessage[]> {
    const [streams, after] = streamsOf(workspace, state, state.upTo);
    const query = { name: 'agent_inbox_unread', text: AFTER_SQL };
    const values = [streams, after, limit, state.streamId, `agent/${agentId}`];
    return (await this.query<MessageRow>(workspace, query, values)).map(toStored);
  }

  /** Returns a page of the messages before a position, newest first. */
  async readNewest(
    workspace: string,
    state: InboxState,
    { limit, before = null, offset = 0 }: NewestMessages,
  ): Promise<ListPage<StoredMessage>> {
    const [streams, after] = streamsOf(workspace, state, 0);
    const query = { name: 'agent_inbox_newest', text: NEWEST_SQL };
    const values = [streams, after, limit + 1, before, offset];
    const rows = await this.query<MessageRow & ListedRow>(workspace, query, values);
    const { shown, hasMore } = cutListPage(rows, limit);
    return { shown: shown.map(toStored), hasMore };
  }

  /** Returns a page of the messages of a workspace, newest first, each with its read mark. */
  async readAll(
    workspace: string,
    { limit, before, upTo, agent, topic, type, cause }: MessageQuery,
  ): Promise<ListPage<StoredMessage & { readonly isRead: boolean | null }>> {
    type Row = MessageRow & ListedRow & { readonly is_read: boolean | null };
    const query = { name: 'agent_messages_all', text: ALL_SQL };
    const values = [limit + 1, before, upTo, agent, topic, type, cause];
    const { shown, hasMore } = cutListPage(await this.query<Row>(workspace, query, values), limit);
    return { shown: shown.map((row) => ({ ...toStored(row), isRead: row.is_read })), hasMore };
  }

  /** Returns the messages of all workspaces after a position, oldest first. */
  async readAfter(position: number, limit: number): Promise<NewMessage[]> {
    try {
      const { rows } = await acrossWorkspaces(this.pool).query<{
        position: string;
        workspace: string;
        stream_id: string;
      }>({ name: 'agent_messages_after', text: TAIL_SQL, values: [position, limit] });
      return rows.map((row) => {
        return { position: Number(row.position), workspace: row.workspace, streamId: row.stream_id };
      });
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }

  /** Returns the position of the newest message of all workspaces. */
  async headPosition(): Promise<number> {
    try {
      const { rows } = await acrossWorkspaces(this.pool).query<{ position: string }>(HEAD_SQL);
      return Number(rows[0]?.position ?? 0);
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }

  private async query<Row extends pg.QueryResultRow>(
    workspace: string,
    query: { readonly name: string; readonly text: string },
    values: readonly unknown[],
  ): Promise<Row[]> {
    try {
      const all = { ...query, values: [workspace, ...values] };
      return (await inWorkspace(this.pool, workspace).query<Row>(all)).rows;
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }
}

/** Returns the streams of an inbox, and the position after which each one is read. */
const streamsOf = (
  workspace: string,
  { streamId, since, topics }: InboxState,
  cursor: number,
): [string[], number[]] => {
  const followed = [[EVERYONE, since] as const, ...topics].map(
    ([topic, from]) => [agentTopicStream(topicUuidOf(workspace, topic)), Math.max(from, cursor)] as const,
  );
  const all = [[streamId, cursor] as const, ...followed];
  return [all.map(([stream]) => stream), all.map(([, after]) => after)];
};
