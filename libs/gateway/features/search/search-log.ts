import { chatOfSessionKey, chatStream, sessionStream } from '@antiphon/contracts/agent';
import type { SearchResult } from '@antiphon/contracts/reference';
import type { WorkspaceQueries } from '@antiphon/database';
import { excerptOf } from './search-words.js';

/** Positions that the first statement searches. Each further one searches four times as many. */
const FIRST_WINDOW = 100_000;
/** Time after which a search ends with what it has, ms. */
const SEARCH_MS = 2_000;
const SEARCH_SQL = 'select * from antiphon_search($1, $2, $3, $4, $5)';
const SESSIONS_SQL = `select stream_id, data ->> 'sessionKey' as session_key, data ->> 'agentId' as agent_id,
    (select left(t.data ->> 'content', 200) from events t where t.workspace = $1 and t.stream_id = e.stream_id
      and t.stream_version <= 10 and t.type = 'TurnRequested' order by t.stream_version limit 1) as title,
    (select t.data ->> 'turnId' from events t where t.workspace = $1 and t.stream_id = e.stream_id
      and t.stream_version <= 10 and t.type = 'TurnRequested' order by t.stream_version limit 1) as title_turn
  from events e where workspace = $1 and stream_id = any ($2) and stream_version = 1`;
/** Deletions at any time, and edits up to a position. */
const CHANGES_SQL = `select stream_id, type, position, data ->> 'turnId' as turn_id, data ->> 'part' as part
  from events where workspace = $1 and stream_id = any ($2) and type in ('ChatMessageDeleted', 'ChatMessageEdited')
    and (type = 'ChatMessageDeleted' or position <= $3)`;
const CHATS_SQL = `select stream_id, type, position, data ->> 'name' as name from events
  where workspace = $1 and stream_id = any ($2) and type in ('ChatCreated', 'ChatRenamed', 'ChatDeleted')
    and (type = 'ChatDeleted' or position <= $3) order by position`;

const TURNS_SQL = `select t.id as turn_id, f.position
  from unnest($1::uuid[]) as t (id) cross join lateral antiphon_find_turn(t.id) f`;

interface Hit {
  readonly position: string;
  readonly stream_id: string;
  readonly type: string;
  readonly turn_id: string | null;
  readonly part: string | null;
  readonly recorded_at: Date;
  readonly content: string;
  readonly data: Readonly<Record<string, string | null>>;
}

interface SessionRow {
  readonly stream_id: string;
  readonly session_key: string;
  readonly agent_id: string;
  readonly title: string | null;
  readonly title_turn: string | null;
}

interface ChangeRow {
  readonly stream_id: string;
  readonly type: string;
  readonly position: string;
  readonly turn_id: string;
  readonly part: string;
}

interface ChatRow {
  readonly stream_id: string;
  readonly type: string;
  readonly position: string;
  readonly name: string | null;
}

interface TurnRow {
  readonly turn_id: string;
  readonly position: string;
}

/** Types of events by the kind of result that they are. */
const TYPES = {
  message: ['TurnRequested', 'ChatMessageEdited'],
  answer: ['ModelCallCompleted', 'ModelCallAborted', 'ChatMessageEdited'],
  chat: ['ChatCreated', 'ChatRenamed'],
  task: ['TaskQueued'],
} as const;
export type LogKind = keyof typeof TYPES;

const partOf = ({ type, part }: Hit): 'message' | 'answer' => {
  if (type === 'ChatMessageEdited') return part === 'answer' ? 'answer' : 'message';
  return type === 'TurnRequested' ? 'message' : 'answer';
};
const kindOf = (hit: Hit): LogKind => {
  if (hit.type === 'TaskQueued') return 'task';
  return hit.type === 'ChatCreated' || hit.type === 'ChatRenamed' ? 'chat' : partOf(hit);
};

/** Words, kinds and positions of a search of the log. */
export interface LogSearch {
  readonly workspace: string;
  readonly query: string;
  readonly words: readonly string[];
  readonly kinds: readonly LogKind[];
  readonly limit: number;
  /** Position up to which events count, and that of the newest one to look at. */
  readonly upTo: number;
  readonly from: number;
}

/** Facts about the sessions and chats of hits. */
class Surroundings {
  constructor(
    private readonly sessions: ReadonlyMap<string, SessionRow>,
    private readonly changes: readonly ChangeRow[],
    private readonly chats: ReadonlyMap<string, { readonly name: string; readonly isDeleted: boolean }>,
    private readonly turns: ReadonlyMap<string | null, number>,
  ) {}

  sessionOf(hit: Hit): SessionRow | undefined {
    return this.sessions.get(hit.stream_id);
  }

  chatOf(session: SessionRow | undefined) {
    const id = session === undefined ? null : chatOfSessionKey(session.session_key);
    return id === null ? undefined : this.chats.get(chatStream(id));
  }

  /** Returns where the conversation of a hit is shown: its chat, and the begin of its turn. */
  placeOf(hit: Hit, session: SessionRow): Pick<SearchResult, 'chatId' | 'turnPosition'> {
    const chatId = this.chatOf(session) === undefined ? null : chatOfSessionKey(session.session_key);
    return { chatId, turnPosition: this.turns.get(hit.turn_id) ?? null };
  }

  chatOfHit(hit: Hit) {
    return this.chats.get(hit.stream_id);
  }

  /** Returns true for a text that is deleted, or that a later text has replaced. */
  isGone(hit: Hit): boolean {
    return this.changes.some(
      ({ stream_id: stream, turn_id: turn, part, type, position }) =>
        stream === hit.stream_id &&
        turn === hit.turn_id &&
        part === partOf(hit) &&
        (type === 'ChatMessageDeleted' || Number(position) > Number(hit.position)),
    );
  }

  /** Returns the name of the chat of a session, else its first message; empty if that is deleted. */
  titleOf(session: SessionRow): string {
    const isDeleted = this.changes.some(
      ({ type, stream_id: stream, turn_id: turn, part }) =>
        type === 'ChatMessageDeleted' &&
        stream === session.stream_id &&
        turn === session.title_turn &&
        part === 'message',
    );
    return this.chatOf(session)?.name ?? (isDeleted ? '' : (session.title ?? ''));
  }
}

const foldChats = (rows: readonly ChatRow[]) => {
  const chats = new Map<string, { readonly name: string; readonly isDeleted: boolean }>();
  for (const { stream_id: stream, type, name } of rows) {
    const before = chats.get(stream) ?? { name: '', isDeleted: false };
    chats.set(
      stream,
      type === 'ChatDeleted' ? { ...before, isDeleted: true } : { ...before, name: name ?? '' },
    );
  }
  return chats;
};

const readSurroundings = async (
  db: WorkspaceQueries,
  { workspace, upTo }: LogSearch,
  hits: readonly Hit[],
): Promise<Surroundings> => {
  const streams = [...new Set(hits.filter(({ turn_id: id }) => id !== null).map((hit) => hit.stream_id))];
  const sessions = await db.query<SessionRow>(SESSIONS_SQL, [workspace, streams]);
  const changes = await db.query<ChangeRow>(CHANGES_SQL, [workspace, streams, upTo]);
  const sessionChats = sessions.rows
    .map(({ session_key: key }) => chatOfSessionKey(key))
    .filter((id) => id !== null)
    .map(chatStream);
  const foundChats = hits.filter((hit) => kindOf(hit) === 'chat').map((hit) => hit.stream_id);
  const chatStreams = [...new Set([...sessionChats, ...foundChats])];
  const chats = await db.query<ChatRow>(CHATS_SQL, [workspace, chatStreams, upTo]);
  const turnIds = [...new Set(hits.map(({ turn_id: id }) => id).filter((id) => id !== null))];
  const turns = await db.query<TurnRow>(TURNS_SQL, [turnIds]);
  return new Surroundings(
    new Map(sessions.rows.map((row) => [row.stream_id, row])),
    changes.rows,
    foldChats(chats.rows),
    new Map(turns.rows.map(({ turn_id: id, position }) => [id, Number(position)])),
  );
};

const SESSION_PREFIX = sessionStream('');
const TASK_PREFIX = 'task-';

type Found = Omit<SearchResult, 'position' | 'at'>;

const toTask = (hit: Hit, words: readonly string[]): Found => ({
  ...{ kind: 'task', id: hit.data['taskId'] ?? hit.stream_id.slice(TASK_PREFIX.length) },
  ...{ title: hit.data['title'] ?? '', text: excerptOf(hit.content, words) },
  ...{ sessionId: null, chatId: null, turnPosition: null, agentId: hit.data['agentId'] ?? null },
});

const toChat = (hit: Hit, around: Surroundings): Found | null => {
  const chat = around.chatOfHit(hit);
  // A name that was given later is a hit of its own.
  if (chat === undefined || chat.isDeleted || chat.name !== hit.data['name']) return null;
  return {
    ...{ kind: 'chat', id: hit.data['chatId'] ?? '', title: chat.name, text: '' },
    ...{ sessionId: hit.data['sessionId'] ?? null, agentId: hit.data['agentId'] ?? null },
    ...{ chatId: null, turnPosition: null },
  };
};

const toMessage = (hit: Hit, around: Surroundings, words: readonly string[]): Found | null => {
  const session = around.sessionOf(hit);
  if (session === undefined || around.isGone(hit) || around.chatOf(session)?.isDeleted) return null;
  return {
    ...{ kind: partOf(hit), id: hit.turn_id ?? '', title: around.titleOf(session) },
    ...{ text: excerptOf(hit.content, words), sessionId: hit.stream_id.slice(SESSION_PREFIX.length) },
    ...{ agentId: session.agent_id, ...around.placeOf(hit, session) },
  };
};

const toResult = (hit: Hit, around: Surroundings, { words, kinds }: LogSearch): SearchResult | null => {
  const kind = kindOf(hit);
  if (!kinds.includes(kind)) return null;
  const found =
    kind === 'task'
      ? toTask(hit, words)
      : kind === 'chat'
        ? toChat(hit, around)
        : toMessage(hit, around, words);
  return found && { ...found, position: Number(hit.position), at: hit.recorded_at.toISOString() };
};

/** Results of a search of the log, and the position down to which it went; 0 for the whole log. */
export interface LogFinds {
  readonly results: readonly SearchResult[];
  readonly searchedTo: number;
}

/**
 * Searches the log from the newest event on, in windows of positions, until there are enough
 * results or the time is over. A turn is found once by its message and once by its answer.
 */
export const searchLog = async (
  db: WorkspaceQueries,
  search: LogSearch,
  now: () => number,
): Promise<LogFinds> => {
  const { query, kinds, limit } = search;
  const types = [...new Set(kinds.flatMap((kind) => TYPES[kind]))];
  const results = new Map<string, SearchResult>();
  const end = now() + SEARCH_MS;
  let upper = Math.min(search.from, search.upTo);
  for (let window = FIRST_WINDOW; upper > 0 && results.size < limit && now() < end;) {
    const lower = Math.max(0, upper - window);
    const { rows } = await db.query<Hit>(SEARCH_SQL, [query, types, lower, upper, limit]);
    const around = await readSurroundings(db, search, rows);
    upper = rows.length < limit ? lower : Number(rows.at(-1)?.position) - 1;
    if (rows.length < limit) window *= 4;
    for (const hit of rows) {
      const result = toResult(hit, around, search);
      if (result === null) continue;
      if (results.size >= limit) return { results: [...results.values()], searchedTo: Number(hit.position) };
      const key = `${result.kind} ${result.id}`;
      if (!results.has(key)) results.set(key, result);
    }
  }
  return { results: [...results.values()], searchedTo: upper };
};
