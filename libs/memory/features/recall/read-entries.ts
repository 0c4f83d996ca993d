import type pg from 'pg';
import type { z } from 'zod';
import { sessionStream, TurnRequested } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { MemoryEntry, turnsOfEntry } from '@antiphon/contracts/memory';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import type { JsonObject } from '@antiphon/kernel';
import { FACT_COLUMNS, PROJECTION_NAME, sessionIdOf, toFact } from '../projections/session-memory.events.js';
import type { FactRow } from '../projections/session-memory.events.js';

/** Maximum entries that a query reads before it ranks them, the newest ones. */
const MAX_ENTRIES_READ = 500;

// An entry is superseded at a position if a later one of its topic was learned up to there.
const ENTRIES = `select ${FACT_COLUMNS.split(', ')
  .map((column) => (column === 'superseded_at' ? 'later.superseded_at' : `f.${column}`))
  .join(', ')}, f.position, f.ordinal
  from memory_facts f
  left join lateral (select min(n.learned_at) as superseded_at from memory_facts n
    where n.workspace = f.workspace and n.key_hash = f.key_hash and n.subject = f.subject
      and n.predicate = f.predicate and (n.position, n.ordinal) > (f.position, f.ordinal) and n.position <= $3) later
    on true
  where f.workspace = $1 and f.position <= $3`;

const listSql = (column: 'session_id' | 'agent_id'): string => `select * from (${ENTRIES}
    and f.key_hash in (select key_hash from memory_sessions where workspace = $1 and ${column} = $2)) entries
  where $4 or superseded_at is null order by position desc, ordinal desc limit ${MAX_ENTRIES_READ}`;

export const LIST_SQL = { session: listSql('session_id'), agent: listSql('agent_id') } as const;

const ONE_SQL = `${ENTRIES} and f.fact_id = $2`;

const OWNER_SQL = `select 1 from memory_facts f join memory_sessions s
    on s.workspace = f.workspace and s.key_hash = f.key_hash
  where f.workspace = $1 and f.fact_id = $2 and s.agent_id = $3 limit 1`;

// A session has no memory before its first event. An archived first event is older than the past.
export const SESSION_SQL = `select agent_id from memory_sessions where workspace = $1 and session_id = $2
  and not exists (select from events e where e.workspace = $1 and e.stream_id = $4
    and e.stream_version = 1 and e.position > $3)`;

// A message that a person deleted has no text any more, also in views of the past.
const SOURCE_SQL = `select event_id, stream_id, type, schema_version, data, exists (select from events d
    where d.workspace = $1 and d.stream_id = e.stream_id and d.type = 'ChatMessageDeleted'
      and d.data ->> 'turnId' = e.data ->> 'turnId' and d.data ->> 'part' = 'message') as is_deleted
  from events e where workspace = $1 and event_id = any ($2::uuid[]) and type = 'TurnRequested'`;

// A context has what was believed before its turn. So the turn that replaces an entry still has it.
// A subquery names the streams: under a policy, a concatenation reaches no index.
//
// $3 is the position up to which turns are listed, and $4 their number.
export const TURNS_SQL = `select s.session_id, s.session_key, s.agent_id, e.data ->> 'turnId' as turn_id, e.stream_version, e.position,
    exists (select from events d where d.workspace = $1 and d.stream_id = e.stream_id and d.type = 'ChatMessageDeleted'
      and d.data ->> 'turnId' = e.data ->> 'turnId' and d.data ->> 'part' = 'message') as is_deleted
  from memory_facts f
  left join lateral (select min(n.position) as position from memory_facts n
    where n.workspace = f.workspace and n.key_hash = f.key_hash and n.subject = f.subject
      and n.predicate = f.predicate and (n.position, n.ordinal) > (f.position, f.ordinal)) later on true
  join lateral (select *, 'session-' || session_id as stream_id from memory_sessions
    where workspace = $1 and key_hash = f.key_hash offset 0) s on true
  join events e on e.workspace = $1 and e.stream_id = s.stream_id and e.type = 'TurnRequested'
  where f.workspace = $1 and f.fact_id = $2 and e.position > f.position
    and e.position <= least($3, coalesce(later.position, $3))
    and exists (select from events c where c.workspace = $1 and c.stream_id = e.stream_id
      and c.stream_version > e.stream_version and c.type = 'ModelCallStarted'
      and c.data ->> 'turnId' = e.data ->> 'turnId' and c.position <= $3)
  order by e.position desc limit $4`;

// The checkpoint only moves with events of sessions. Without such events after it, the rows are of
// the head.
const PROGRESS_SQL = `with at as materialized (select public.antiphon_head_position() as head,
    coalesce((select position from projection_checkpoints where name = $1), 0) as checkpoint)
  select head, case when exists (select from events e where e.position > at.checkpoint and e.position <= at.head
    and e.category = 'session') then checkpoint else head end as position from at`;

interface EntryRow extends FactRow {
  readonly position: string;
}

interface SourceRow {
  readonly event_id: string;
  readonly stream_id: string;
  readonly type: string;
  readonly schema_version: number;
  readonly data: JsonObject;
  readonly is_deleted: boolean;
}

interface TurnRow {
  readonly session_id: string;
  readonly session_key: string;
  readonly agent_id: string;
  readonly turn_id: string;
  readonly stream_version: string;
  readonly position: string;
  readonly is_deleted: boolean;
}

type Source = NonNullable<MemoryEntry['source']>;
type EntryTurn = z.output<typeof turnsOfEntry.reply>['turns'][number];

const toEntry = (row: EntryRow): MemoryEntry => {
  const { factId, sourceEventId, ...fact } = toFact(row);
  return {
    ...fact,
    memoryId: factId,
    kind: 'fact',
    text: `${fact.subject} ${fact.predicate} ${fact.object}`,
    eventId: sourceEventId,
    position: Number(row.position),
    source: null,
  };
};

const toSource = (row: SourceRow): Source | null => {
  const { type, schemaVersion, data } = upcast({ ...row, schemaVersion: row.schema_version });
  const parsed = TurnRequested.safeParse({ type, schemaVersion, data });
  const sessionId = sessionIdOf(row.stream_id);
  if (!parsed.success || sessionId === null) return null;
  const { turnId, content, requestedAt: at } = parsed.data.data;
  return { sessionId, turnId, content: row.is_deleted ? '' : content, at };
};

/** Reads entries of memory from the rows of the projection. */
export class EntryReader {
  readonly #pool: pg.Pool;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  /** Returns the position that the rows are of, and the newest position of the log. */
  async progress(workspace: string): Promise<{ position: number; head: number }> {
    const [row] = await this.#query<{ position: string; head: string }>(workspace, PROGRESS_SQL, [
      PROJECTION_NAME,
    ]);
    return { position: Number(row?.position ?? 0), head: Number(row?.head ?? 0) };
  }

  /** Returns the agent of a session, null for a session that began after the position or never. */
  async agentOf(workspace: string, sessionId: string, at: number): Promise<string | null> {
    const values = [workspace, sessionId, at, sessionStream(sessionId)];
    const [row] = await this.#query<{ agent_id: string }>(workspace, SESSION_SQL, values);
    return row?.agent_id ?? null;
  }

  /** Returns whether an entry was learned in a session of the agent. */
  async belongsTo(workspace: string, memoryId: string, agentId: string): Promise<boolean> {
    return (await this.#query(workspace, OWNER_SQL, [workspace, memoryId, agentId])).length > 0;
  }

  /**
   * Lists the entries of a session's key or of an agent as of a position, newest first. Lists at
   * most 500.
   */
  async list(
    workspace: string,
    of: { readonly kind: 'session' | 'agent'; readonly id: string },
    { at, includeSuperseded }: { readonly at: number; readonly includeSuperseded: boolean },
  ): Promise<MemoryEntry[]> {
    const values = [workspace, of.id, at, includeSuperseded];
    return (await this.#query<EntryRow>(workspace, LIST_SQL[of.kind], values)).map(toEntry);
  }

  /** Returns one entry as of a position, null for an unknown id. */
  async find(
    workspace: string,
    memoryId: string,
    at: number = Number.MAX_SAFE_INTEGER,
  ): Promise<MemoryEntry | null> {
    const values = [workspace, memoryId, at];
    const [row] = await this.#query<EntryRow>(workspace, ONE_SQL, values);
    return row === undefined ? null : toEntry(row);
  }

  /** Lists turns with a model call that were requested while an entry was believed, newest first. */
  async turnsOf(
    workspace: string,
    memoryId: string,
    { upTo, limit }: { readonly upTo: number; readonly limit: number },
  ): Promise<EntryTurn[]> {
    const rows = await this.#query<TurnRow>(workspace, TURNS_SQL, [workspace, memoryId, upTo, limit]);
    return rows.map((row) => ({
      ...{
        sessionId: row.session_id,
        sessionKey: row.session_key,
        agentId: row.agent_id,
        turnId: row.turn_id,
      },
      isDeleted: row.is_deleted,
      ...{ version: Number(row.stream_version), position: Number(row.position) },
    }));
  }

  /** Returns the entries with the messages that they were learned from; null for archived ones. */
  async withSources(workspace: string, entries: readonly MemoryEntry[]): Promise<MemoryEntry[]> {
    const values = [workspace, entries.map(({ eventId }) => eventId)];
    const rows = await this.#query<SourceRow>(workspace, SOURCE_SQL, values);
    const sources = new Map(rows.map((row) => [row.event_id, toSource(row)]));
    return entries.map((entry) => ({ ...entry, source: sources.get(entry.eventId) ?? null }));
  }

  async #query<Row extends pg.QueryResultRow>(
    workspace: string,
    text: string,
    values: unknown[],
  ): Promise<Row[]> {
    const { rows } = await inWorkspace(this.#pool, workspace)
      .query<Row>(text, values)
      .catch((error: unknown) => {
        throw translateDatabaseError(error);
      });
    return rows;
  }
}
