import type pg from 'pg';
import { inTransaction } from '@antiphon/database';

/** A written archive file whose events are still in the log. */
export interface ArchiveRequest {
  readonly archiveId: string;
  /** Name in the folder of archive files. */
  readonly file: string;
  readonly sha256: Buffer;
  readonly cutPosition: number;
  /** Reason for which the archiver refused it; null while it waits. */
  readonly refusal: string | null;
}

interface RequestRow {
  readonly archive_id: string;
  readonly file: string;
  readonly sha256: Buffer;
  readonly cut_position: string;
  readonly refusal: string | null;
}

const LIST_SQL = `select archive_id, file, sha256, cut_position, refusal from archive_requests
  order by requested_at, archive_id`;
const INSERT_SQL =
  'insert into archive_requests (archive_id, file, sha256, cut_position) values ($1, $2, $3, $4)';
// A refusal is final: the function that takes events out of the log needs a request without one.
const REFUSE_SQL = 'update archive_requests set refusal = $2 where archive_id = $1 and refusal is null';
const DELETE_SQL = 'delete from archive_requests where archive_id = $1 and refusal is not null';

/** Lists the requests that wait or were refused, oldest first. */
export const listArchiveRequests = async (db: pg.Pool | pg.ClientBase): Promise<ArchiveRequest[]> => {
  const { rows } = await db.query<RequestRow>(LIST_SQL);
  return rows.map((row) => ({
    archiveId: row.archive_id,
    file: row.file,
    sha256: row.sha256,
    cutPosition: Number(row.cut_position),
    refusal: row.refusal,
  }));
};

/** Records a request. Rejects with `DATABASE.…` or `LOG.UNAVAILABLE`. */
export const insertArchiveRequest = (
  pool: pg.Pool,
  { archiveId, file, sha256, cutPosition }: Omit<ArchiveRequest, 'refusal'>,
): Promise<void> =>
  inTransaction(pool, async (client) => {
    await client.query(INSERT_SQL, [archiveId, file, sha256, cutPosition]);
  });

/** Refuses a request that waits. The pool's role is the archiver. */
export const refuseArchiveRequest = (pool: pg.Pool, archiveId: string, reason: string): Promise<void> =>
  inTransaction(pool, async (client) => {
    await client.query(REFUSE_SQL, [archiveId, reason]);
  });

/** Deletes a refused request. Returns false for one that waits or does not exist. */
export const deleteRefusedRequest = (pool: pg.Pool, archiveId: string): Promise<boolean> =>
  inTransaction(pool, async (client) => (await client.query(DELETE_SQL, [archiveId])).rowCount === 1);
