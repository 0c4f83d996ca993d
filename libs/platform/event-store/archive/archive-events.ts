import type pg from 'pg';
import { proposeArchive, withdrawArchive } from './archive-log.js';
import type { Archived, ArchiveOptions } from './archive-log.js';
import { settleArchiveRequest } from './execute-archive.js';

export interface ArchiveEventsOptions extends ArchiveOptions {
  /** Pool of the archiver's role; by default `pool`, whose user must own the database then. */
  readonly archiver?: pg.Pool;
}

/**
 * Moves the oldest event streams at rest to one file: requests the archive and settles the request
 * at once. Returns null when there is nothing to archive. Rejects with the reason of a refusal, and
 * then no event has left. A stream that has grown since the selection is such a failure
 * (transient). A request that could not be settled waits for the next archiver.
 */
export const archiveEvents = async (options: ArchiveEventsOptions): Promise<Archived | null> => {
  const { pool, archiver = pool, folder } = options;
  const proposed = await proposeArchive(options);
  if (proposed === null) return null;
  const outcome = await settleArchiveRequest(archiver, folder, { ...proposed, refusal: null });
  if ('archived' in outcome) return outcome.archived;
  await withdrawArchive(pool, folder, proposed);
  throw outcome.refusal;
};
