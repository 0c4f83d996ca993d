import type pg from 'pg';
import type { EventPlace } from '@antiphon/audit-domain';

/** Runs end with one of these, and nothing follows it (`run-order`). */
const RUN_ENDS = ['RunCompleted', 'RunFailed', 'RunCancelled'];

const OPEN_RUNS_SQL = `select e.position, e.workspace, e.stream_id, e.stream_version, e.event_id
  from stream_heads h
  join events e on e.workspace = h.workspace and e.stream_id = h.stream_id and e.stream_version = h.version
  where h.stream_id >= 'run-' and h.stream_id < 'run.' and e.type <> all ($1)`;

interface Row {
  readonly position: string;
  readonly workspace: string;
  readonly stream_id: string;
  readonly stream_version: string;
  readonly event_id: string;
}

/** What the log says is waiting in Temporal: the workflow's id, and the newest event of what it stands for. */
export const openInTheLog = async (pool: pg.Pool): Promise<ReadonlyMap<string, EventPlace>> => {
  const { rows } = await pool.query<Row>(OPEN_RUNS_SQL, [RUN_ENDS]);
  return new Map(
    rows.map((row) => [
      `run/${row.stream_id.slice('run-'.length)}`,
      {
        position: Number(row.position),
        workspace: row.workspace,
        streamId: row.stream_id,
        streamVersion: Number(row.stream_version),
        eventId: row.event_id,
      },
    ]),
  );
};
