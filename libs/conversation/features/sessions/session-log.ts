import type pg from 'pg';
import { SessionEvent, sessionStream } from '@antiphon/contracts/agent';
import { currentFormOf, upcast } from '@antiphon/contracts/events';
import { sessionDecider } from '@antiphon/conversation-domain';
import type { RecentWindow, SessionDecider } from '@antiphon/conversation-domain';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import type { EventStore, RecordedEvent } from '@antiphon/event-store';
import { bug } from '@antiphon/kernel';
import { advanceFold, emptyFold } from './session-fold.js';
import type { AdvanceFold, FoldedEvent, SessionFold } from './session-fold.js';
import { createToken } from '@antiphon/service-host';

/**
 * Version of the form of `SessionFold` and of the meaning of its fields. Raise it with each change.
 */
const FOLD_FORM = 14;
const PAGE = 1_000;
/** Number of events after which a new snapshot of a fold is written. */
export const SNAPSHOT_EVERY = 500;

export const foldSignature = ({ turns, chars }: RecentWindow): string => `${FOLD_FORM}:${turns}:${chars}`;

const KNOWN = new Set<string>(SessionEvent.options.map((option) => option.shape.type.value));

// Events were validated when they were appended. A newer version's event must not be folded
// partially.
export const toFolded = (recorded: RecordedEvent): FoldedEvent => {
  const { type, schemaVersion, data, eventId, metadata } = upcast(recorded);
  if (!KNOWN.has(type) || schemaVersion !== currentFormOf(type))
    throw bug('SESSION.EVENT_UNKNOWN', `this version does not know ${type} in its form ${schemaVersion}`);
  return { event: { type, schemaVersion, data } as unknown as SessionEvent, eventId, metadata };
};

/** Reads sessions from the log: their folds, and the events after a fold. */
export interface SessionLog {
  readonly decider: SessionDecider;
  readonly advance: AdvanceFold;
  /** Returns the fold at the end of the event stream; `emptyFold` if there is none. */
  load(workspace: string, sessionId: string): Promise<SessionFold>;
  /** Returns all events after the version of a fold. */
  readAfter(workspace: string, sessionId: string, fold: SessionFold): Promise<FoldedEvent[]>;
  snapshot(workspace: string, sessionId: string, fold: SessionFold): Promise<void>;
}

export const createSessionLog = (
  store: Pick<EventStore, 'readStreamPage'>,
  snapshots: SessionSnapshots,
  window: RecentWindow,
): SessionLog => {
  const decider = sessionDecider(window);
  const advance = advanceFold(decider.evolve);
  const readPage = async (workspace: string, sessionId: string, after: number) => {
    const options = { fromVersion: after + 1, limit: PAGE };
    const { events, hasMore } = await store.readStreamPage(workspace, sessionStream(sessionId), options);
    return { page: events.map(toFolded), hasMore };
  };
  const readAfter: SessionLog['readAfter'] = async (workspace, sessionId, { version }) => {
    const events: FoldedEvent[] = [];
    for (let isFull = true; isFull;) {
      const { page, hasMore } = await readPage(workspace, sessionId, version + events.length);
      events.push(...page);
      isFull = hasMore;
    }
    return events;
  };
  const load: SessionLog['load'] = async (workspace, sessionId) => {
    let fold = (await snapshots.read(workspace, sessionId)) ?? emptyFold;
    const from = fold.version;
    for (let isFull = true; isFull;) {
      const { page, hasMore } = await readPage(workspace, sessionId, fold.version);
      fold = advance(fold, page).fold;
      isFull = hasMore;
    }
    if (fold.version - from >= SNAPSHOT_EVERY) await snapshots.write(workspace, sessionId, fold);
    return fold;
  };
  return { decider, advance, load, readAfter, snapshot: snapshots.write };
};

/**
 * Snapshots of folds, so that a long session is not folded from its first event. They are a cache
 * of the log: any of them may be deleted at any time. `signature` names the form of the fold; a
 * snapshot of another form is not read. Each has the hash of the event at its version. One of
 * another history, or of an archived stream, is deleted instead of read.
 */
export interface SessionSnapshots {
  read(workspace: string, sessionId: string): Promise<SessionFold | null>;
  write(workspace: string, sessionId: string, fold: SessionFold): Promise<void>;
}

/** The event of an archived stream is not there: its snapshot must not let the session continue. */
const READ_SQL = `select s.fold, s.version, coalesce(e.hash = s.head_hash, false) as matches
  from agent_session_snapshots s
  left join events e on e.workspace = s.workspace and e.stream_id = $4 and e.stream_version = s.version
  where s.workspace = $1 and s.session_id = $2 and s.signature = $3`;
const DROP_SQL = `delete from agent_session_snapshots where workspace = $1 and session_id = $2 and version = $3`;
/** A slower process may write an older fold later: the newer one stays. */
const WRITE_SQL = `insert into agent_session_snapshots as s (workspace, session_id, signature, version, fold, head_hash, taken_at)
  select $1, $2::uuid, $3, $4, $5::jsonb, e.hash, clock_timestamp()
  from events e where e.workspace = $1 and e.stream_id = $6 and e.stream_version = $4
  on conflict (workspace, session_id) do update
    set signature = excluded.signature, version = excluded.version, fold = excluded.fold,
      head_hash = excluded.head_hash, taken_at = excluded.taken_at
  where s.signature <> excluded.signature or s.version < excluded.version`;

interface SnapshotRow {
  readonly fold: SessionFold;
  readonly version: string;
  readonly matches: boolean;
}

const query = async <Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  name: string,
  text: string,
  values: [workspace: string, ...unknown[]],
): Promise<Row[]> => {
  try {
    return (await inWorkspace(pool, values[0]).query<Row>({ name, text, values })).rows;
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

export const createSessionSnapshots = (pool: pg.Pool, signature: string): SessionSnapshots => ({
  read: async (workspace, sessionId) => {
    const values: [string, ...unknown[]] = [workspace, sessionId, signature, sessionStream(sessionId)];
    const [row] = await query<SnapshotRow>(pool, 'agent_read_snapshot', READ_SQL, values);
    if (row === undefined || row.matches) return row?.fold ?? null;
    await query(pool, 'agent_drop_snapshot', DROP_SQL, [workspace, sessionId, row.version]);
    return null;
  },
  write: async (workspace, sessionId, fold) => {
    const json = JSON.stringify(fold);
    const stream = sessionStream(sessionId);
    const values: [string, ...unknown[]] = [workspace, sessionId, signature, fold.version, json, stream];
    await query(pool, 'agent_write_snapshot', WRITE_SQL, values);
  },
});

export const SESSION_LOG = createToken<SessionLog>('SESSION_LOG');
