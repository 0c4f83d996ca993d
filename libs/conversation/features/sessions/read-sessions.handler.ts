import { Controller, Inject } from '@nestjs/common';
import { PAST_READS } from '@antiphon/agents-features';
import {
  chatOfSessionKey,
  chatStream,
  getSession,
  listOpenSessions,
  listSessions,
  sessionStream,
} from '@antiphon/contracts/agent';
import type { SessionSummary } from '@antiphon/contracts/agent';
import { encodeCursor } from '@antiphon/contracts/log';
import type { WorkspaceQueries } from '@antiphon/database';
import { translateDatabaseError } from '@antiphon/database';
import type { PastReads } from '@antiphon/event-store';
import { positionOfCursor } from '@antiphon/event-store';
import { notFound } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';

type ListRequest = z.output<typeof listSessions.request>;
type ListReply = z.input<typeof listSessions.reply>;
type OpenRequest = z.output<typeof listOpenSessions.request>;
type GetRequest = z.output<typeof getSession.request>;

const MAX_TITLE = 200;
/** A first message is among the first events of a session. */
const FIRST_EVENTS = 10;

interface Row {
  readonly session_id: string;
  readonly session_key: string;
  readonly agent_id: string;
  readonly started_at: Date;
  readonly turns: string;
  readonly open_turns: number;
  readonly last_position: string;
  readonly pending: string;
}

const COLUMNS = `s.session_id, s.session_key, s.agent_id, s.started_at, s.turns, s.open_turns, s.last_position,
  coalesce(p.pending, 0) as pending`;
const FROM = `from agent_sessions s left join (select session_id, count(*) as pending from agent_approvals
  where workspace = $1 and status = 'pending' group by 1) p on p.session_id = s.session_id`;
/** An index has the order of the list. Under a policy, a function reaches no index. */
export const LIST_SQL = `select ${COLUMNS} ${FROM}
  left join lateral (select e.recorded_at from events e where e.position = s.last_position
    and ($8::timestamptz is not null or $9::timestamptz is not null)) l on true
  where s.workspace = $1 and s.last_position < $2
    and ($4::text is null or s.agent_id = $4) and ($5::text is null or split_part(s.session_key, ':', 2) = $5)
    and ($6::text is null or position(lower($6) in lower(s.session_key)) > 0)
    and ($8::timestamptz is null or coalesce(l.recorded_at, s.started_at) >= $8)
    and ($9::timestamptz is null or coalesce(l.recorded_at, s.started_at) < $9)
    and ($10::text is null or position(lower($10) in lower(s.agent_id)) > 0)
    and ($11::text is null or s.session_id = any (array(select antiphon_find_titles($11, $13::bigint))))
    and ($12::text is null or s.session_id = any (array(select antiphon_forks_of($12, $13::bigint))))
    and case $7::text when 'idle' then s.open_turns = 0 when 'waiting' then p.pending > 0
      when 'working' then s.open_turns > 0 and p.pending is null else true end
  order by s.last_position desc limit $3`;
const GET_SQL = `select ${COLUMNS} ${FROM} where s.workspace = $1 and s.session_id = $2`;
const TIMES_SQL = 'select position, recorded_at from events where position = any ($1)';
const TITLES_SQL = `select distinct on (stream_id) stream_id, data ->> 'turnId' as turn_id,
    left(data ->> 'content', ${MAX_TITLE}) as title from events
  where workspace = $1 and stream_id = any ($2) and stream_version <= ${FIRST_EVENTS} and type = 'TurnRequested'
    and position <= $3
  order by stream_id, stream_version`;
/** Messages that were deleted at any time: a view of the past does not show them again. */
const DELETED_SQL = `select data ->> 'turnId' as turn_id from events
  where workspace = $1 and type = 'ChatMessageDeleted' and stream_id = any ($2) and data ->> 'part' = 'message'`;

/** Names of chats, and the end of deleted ones. */
const CHATS_SQL = `select data ->> 'chatId' as id, data ->> 'name' as name, type = 'ChatDeleted' as deleted from events
  where workspace = $1 and stream_id = any ($2) and type in ('ChatCreated', 'ChatRenamed', 'ChatDeleted')
    and position <= $3
  order by stream_id, stream_version`;

const FORKS_SQL = `select stream_id, data #>> '{origin,sessionId}' as origin, (data #>> '{origin,version}')::bigint as version
  from events where workspace = $1 and stream_id = any ($2) and stream_version <= ${FIRST_EVENTS} and type = 'SessionForked'
    and position <= $3`;

/** Sessions with an open turn: those of the projection, and those that it has not seen yet. */
const OPEN_SQL = `select session_id::text as id from agent_sessions where workspace = $1 and open_turns > 0
  union select substr(stream_id, 9) from events where workspace = $1 and category = 'session' and position <= $2
    and position > coalesce((select position from projection_checkpoints where name = 'agent-sessions'), 0)
    and stream_id !~ '^session-key-'
  limit 10000`;

const stateOf = ({ open_turns: open, pending }: Row): SessionSummary['state'] => {
  if (Number(pending) > 0) return 'waiting';
  return open > 0 ? 'working' : 'idle';
};

/** Returns the text of a part of a key; one that cannot be decoded stays as it is. */
const unescapePart = (part: string): string => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
};

interface ChatRow {
  readonly id: string;
  readonly name: string;
  readonly deleted: boolean;
}

/** Returns the chats of sessions by their ids, without deleted ones. */
const readChats = async (
  queries: WorkspaceQueries,
  workspace: string,
  rows: readonly Row[],
  upTo: number,
): Promise<ReadonlyMap<string, { readonly id: string; readonly name: string }>> => {
  const ids = rows.flatMap(({ session_key: key }) => chatOfSessionKey(key) ?? []);
  if (ids.length === 0) return new Map();
  const values = [workspace, ids.map(chatStream), upTo];
  const found = await queries.query<ChatRow>(CHATS_SQL, values);
  const chats = new Map<string, { id: string; name: string }>();
  for (const { id, name, deleted } of found.rows)
    if (deleted) chats.delete(id);
    else chats.set(id, { id, name });
  return chats;
};

interface TitleRow {
  readonly stream_id: string;
  readonly turn_id: string;
  readonly title: string;
}

interface ForkRow {
  readonly stream_id: string;
  readonly origin: string;
  readonly version: string;
}

/** Adds what the events of the sessions say to their rows. Only events up to `upTo` count. */
const toSummaries = async (
  queries: WorkspaceQueries,
  workspace: string,
  rows: readonly Row[],
  upTo: number,
): Promise<SessionSummary[]> => {
  const streams = rows.map(({ session_id: id }) => sessionStream(id));
  const titles = await queries.query<TitleRow>(TITLES_SQL, [workspace, streams, upTo]);
  const deletions = await queries.query<{ turn_id: string }>(DELETED_SQL, [workspace, streams]);
  const times = await queries.query<{ position: string; recorded_at: Date }>(TIMES_SQL, [
    rows.map((row) => row.last_position),
  ]);
  const forks = await queries.query<ForkRow>(FORKS_SQL, [workspace, streams, upTo]);
  const originOf = new Map(
    forks.rows.map(({ stream_id: stream, origin: sessionId, version }) => [
      stream,
      { sessionId, version: Number(version) },
    ]),
  );
  const chats = await readChats(queries, workspace, rows, upTo);
  const deleted = new Set(deletions.rows.map(({ turn_id: id }) => id));
  const shown = titles.rows.filter(({ turn_id: id }) => !deleted.has(id));
  const titleOf = new Map(shown.map((row) => [row.stream_id, row.title]));
  const timeOf = new Map(times.rows.map((row) => [row.position, row.recorded_at.toISOString()]));
  return rows.map((row) => ({
    id: row.session_id,
    key: row.session_key,
    agentId: row.agent_id,
    channel: unescapePart(row.session_key.split(':')[1] ?? ''),
    state: stateOf(row),
    turns: Number(row.turns),
    openTurns: row.open_turns,
    pendingApprovals: Number(row.pending),
    title: titleOf.get(sessionStream(row.session_id)) ?? null,
    chat: chats.get(chatOfSessionKey(row.session_key) ?? '') ?? null,
    forkedFrom: originOf.get(sessionStream(row.session_id)) ?? null,
    startedAt: row.started_at.toISOString(),
    lastAt: timeOf.get(row.last_position) ?? null,
    lastPosition: Number(row.last_position),
  }));
};

// A fork names its origin in one of its first events. The origin may be a fork itself. The query of
// origins names the streams: under a policy, a concatenation reaches no index.
const ORIGIN = `(e.data #>> '{origin,sessionId}')::uuid as origin, (e.data #>> '{origin,version}')::bigint as version,
      'session-' || (e.data #>> '{origin,sessionId}') as stream_id`;
export const ORIGINS_SQL = `with recursive origins as (
    select 1 as depth, ${ORIGIN} from events e where e.workspace = $1 and e.stream_id = $2
      and e.stream_version <= ${FIRST_EVENTS} and e.type = 'SessionForked' and e.position <= $3
    union all
    select o.depth + 1, ${ORIGIN} from origins o join events e on e.workspace = $1 and e.stream_id = o.stream_id
      and e.stream_version <= ${FIRST_EVENTS} and e.type = 'SessionForked' where o.depth < 100)
  select depth, origin, version, (select count(*) from events t where t.workspace = $1
      and t.stream_id = origins.stream_id and t.stream_version <= version and t.type = 'TurnRequested') as turns
  from origins order by depth`;

interface OriginRow {
  readonly origin: string;
  readonly version: string;
  readonly turns: string;
}

/** Returns the origin of a fork, with the number of turns that the fork has from it. */
const readOrigin = async (
  queries: WorkspaceQueries,
  workspace: string,
  sessionId: string,
  upTo: number,
): Promise<z.input<typeof getSession.reply>['forkedFrom']> => {
  const { rows } = await queries
    .query<OriginRow>(ORIGINS_SQL, [workspace, sessionStream(sessionId), upTo])
    .catch(failTranslated);
  const [first] = rows;
  if (!first) return null;
  const turns = rows.reduce((sum, row) => sum + Number(row.turns), 0);
  return { sessionId: first.origin, version: Number(first.version), turns };
};

/** Returns the filters in the order of the statement. */
const filterValues = (request: ListRequest): (string | null)[] => {
  const { agentId, channel, text, state, since, until, agentPart, titles, forkedFrom } = request;
  const escaped = channel === undefined ? undefined : encodeURIComponent(channel);
  const values = [agentId, escaped, text, state, since, until, agentPart, titles, forkedFrom];
  return values.map((value) => value ?? null);
};

/** Serves lists of sessions from the projection, now or as of a position of the log. */
@Controller()
export class ReadSessions {
  constructor(@Inject(PAST_READS) private readonly past: PastReads) {}

  @HandleRequest(listSessions)
  list(request: ListRequest): Promise<ListReply> {
    const { workspace, limit, cursor, at } = request;
    const page = [workspace, positionOfCursor(cursor) ?? Number.MAX_SAFE_INTEGER, limit + 1];
    return this.past.readAsOf(workspace, at, async (queries, upTo) => {
      const values = [...page, ...filterValues(request), upTo];
      const { rows } = await queries.query<Row>(LIST_SQL, values).catch(failTranslated);
      const shown = rows.slice(0, limit);
      const last = shown.at(-1);
      return {
        sessions: await toSummaries(queries, workspace, shown, upTo),
        nextCursor: rows.length > limit && last ? encodeCursor(Number(last.last_position)) : null,
      };
    });
  }

  @HandleRequest(listOpenSessions)
  listOpen({ workspace, upTo }: OpenRequest): Promise<z.input<typeof listOpenSessions.reply>> {
    return this.past.readAsOf(workspace, undefined, async (queries) => {
      const { rows } = await queries.query<{ id: string }>(OPEN_SQL, [workspace, upTo]).catch(failTranslated);
      return { sessionIds: rows.map(({ id }) => id) };
    });
  }

  @HandleRequest(getSession)
  get({ workspace, sessionId, at }: GetRequest): Promise<z.input<typeof getSession.reply>> {
    return this.past.readAsOf(workspace, at, async (queries, upTo) => {
      const { rows } = await queries.query<Row>(GET_SQL, [workspace, sessionId]).catch(failTranslated);
      const [summary] = await toSummaries(queries, workspace, rows, upTo);
      if (!summary) throw notFound('SESSION.NOT_FOUND', `there is no session ${sessionId}`);
      return { ...summary, forkedFrom: await readOrigin(queries, workspace, sessionId, upTo) };
    });
  }
}

const failTranslated = (error: unknown): never => {
  throw translateDatabaseError(error);
};
