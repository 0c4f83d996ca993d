import type pg from 'pg';
import { sessionStream } from '@antiphon/contracts/agent';
import { sessionDecider } from '@antiphon/conversation-domain';
import { canonicalJson, pageSql } from '@antiphon/event-store';
import type { EventMetadata, RecordedEvent } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';
import { advanceFold, emptyFold } from './session-fold.js';
import type { SessionFold } from './session-fold.js';
import { foldSignature, toFolded } from './session-log.js';

interface SnapshotRow {
  readonly workspace: string;
  readonly session_id: string;
  readonly signature: string;
  readonly version: string;
  readonly fold: JsonObject;
  readonly head_hash: Buffer;
}

interface FoldedRow {
  readonly stream_version: string;
  readonly event_id: string;
  readonly type: string;
  readonly schema_version: number;
  readonly data: JsonObject;
  readonly metadata: EventMetadata;
  readonly hash: Buffer;
}

const SNAPSHOTS_SQL = `select workspace, session_id, signature, version, fold, head_hash from agent_session_snapshots
  where (workspace, session_id) > ($1, $2) order by workspace, session_id limit 4`;
const EVENTS_SQL = pageSql(
  `where workspace = $1 and stream_id = $2 and stream_version > $3 and stream_version <= $4
    order by stream_version limit 500`,
  'stream_version',
);
/** Sorts before every id. */
const NO_ID = '00000000-0000-0000-0000-000000000000';

const toRecorded = (row: FoldedRow): RecordedEvent =>
  ({
    ...{ eventId: row.event_id, type: row.type, schemaVersion: row.schema_version },
    ...{ data: row.data, metadata: row.metadata, streamVersion: Number(row.stream_version) },
  }) as RecordedEvent;

interface FoldedAgain {
  readonly fold: SessionFold;
  /** Hash of the last folded event. */
  readonly hash: Buffer | undefined;
}

/** Folds the first events of a session again, as many as its snapshot covers. */
const foldAgain = async (client: pg.ClientBase, row: SnapshotRow): Promise<FoldedAgain> => {
  const [, turns, chars] = row.signature.split(':').map(Number);
  const advance = advanceFold(sessionDecider({ turns: turns ?? 0, chars: chars ?? 0 }).evolve);
  const [version, stream] = [Number(row.version), sessionStream(row.session_id)];
  let fold = emptyFold;
  let hash: Buffer | undefined;
  for (;;) {
    const values = [row.workspace, stream, fold.version, version];
    const { rows } = await client.query<FoldedRow>(EVENTS_SQL, values);
    if (rows.length === 0) return { fold, hash };
    hash = rows.at(-1)?.hash;
    fold = advance(fold, rows.map(toRecorded).map(toFolded)).fold;
  }
};

/** True for a snapshot that this version reads; one of another form is folded again anyway. */
const isCurrent = ({ signature }: SnapshotRow): boolean => {
  const [, turns, chars] = signature.split(':').map(Number);
  return foldSignature({ turns: turns ?? 0, chars: chars ?? 0 }) === signature;
};

const compare = async (client: pg.ClientBase, row: SnapshotRow): Promise<string[]> => {
  const { fold, hash } = await foldAgain(client, row);
  const place = `the snapshot of session ${row.session_id} at version ${row.version}`;
  if (fold.version !== Number(row.version)) return [`${place}: the log has ${fold.version} of its events`];
  if (hash?.equals(row.head_hash) !== true) return [`${place} is bound to another hash than the log's`];
  const again = canonicalJson(JSON.parse(JSON.stringify(fold)) as JsonObject);
  return again === canonicalJson(row.fold) ? [] : [`${place} is not the fold of its events`];
};

/**
 * Compares every snapshot that a driver would continue from with the fold of the log. Returns the
 * number of snapshots and a sentence for each difference.
 */
export const compareSnapshots = async (
  client: pg.ClientBase,
): Promise<{ readonly rows: number; readonly differences: readonly string[] }> => {
  const differences: string[] = [];
  let rows = 0;
  for (let after: readonly string[] = ['', NO_ID]; ;) {
    const page = (await client.query<SnapshotRow>(SNAPSHOTS_SQL, [...after])).rows;
    const last = page.at(-1);
    if (last === undefined) return { rows, differences };
    for (const row of page.filter(isCurrent)) {
      rows++;
      differences.push(...(await compare(client, row)));
    }
    after = [last.workspace, last.session_id];
  }
};
