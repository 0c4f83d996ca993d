import { isAbsolute } from 'node:path';
import type pg from 'pg';
import type { AntiphonConfig } from '@antiphon/config';
import { REST_RULES } from '@antiphon/contracts/events';
import { listArchiveRequests, listArchives, proposeArchive, withdrawArchive } from '@antiphon/event-store';
import type { ArchiveRequest } from '@antiphon/event-store';
import { invalid, isoTime, sleep } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { defineCounter } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import type { Environment } from '@antiphon/service-host';

/** Age of event streams that leave the log, and their destination. */
export interface Retention {
  /** Absolute path. The archive files in it remain part of the log. */
  readonly folder: string;
  /** Number of whole days (UTC) that a stream stays after its last event. */
  readonly days: number;
}

/**
 * Reads the retention settings. Returns null if all events stay: without a configured folder, or
 * with `events_days = 0`. Throws `SERVICE.BAD_ENVIRONMENT` for a relative folder, because it would
 * differ between processes.
 */
export const readRetention = (
  env: Environment,
  {
    retention: { eventsDays: days },
  }: { readonly retention: Pick<AntiphonConfig['retention'], 'eventsDays'> },
): Retention | null => {
  const folder = env['ANTIPHON_ARCHIVE_FOLDER'] || undefined;
  if (folder === undefined || days === 0) return null;
  if (!isAbsolute(folder))
    throw invalid(
      'SERVICE.BAD_ENVIRONMENT',
      'the service cannot start: ANTIPHON_ARCHIVE_FOLDER: must be an absolute path',
    );
  return { folder, days };
};

const archived = defineCounter('antiphon_log_archived_events', 'Events moved from the log to archive files');

interface Deps {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly retention: Retention | null;
  /** Maximum time that the sweep waits for the archiver, milliseconds. */
  readonly waitMs?: number;
}

/** Archives one file of old events. Returns the number of events; 0 when none has left. */
export type ArchiveOldEvents = (signal: AbortSignal) => Promise<number>;

const DAY_MS = 24 * 3_600_000;
const WAIT_MS = 60_000;
const POLL_MS = 200;

/** Returns the cut-off at a midnight, so that a day's expired events are archived in one file. */
const cutOffTime = (clock: Clock, days: number): string => {
  const midnight = Date.parse(`${isoTime(clock).slice(0, 10)}T00:00:00.000Z`);
  return new Date(midnight - days * DAY_MS).toISOString();
};

/**
 * Creates the sweep that applies retention (ADR 101). It writes a file and requests its archive.
 * The archiver, another role, takes the events out of the log. Repeats and kills at any moment are
 * safe. A waiting request is not made twice, and a refused one is withdrawn together with its file.
 */
export const createArchiveOldEvents = (deps: Deps): ArchiveOldEvents => {
  const { pool, clock, logger, retention, waitMs = WAIT_MS } = deps;

  const withdrawRefused = async (folder: string, requests: readonly ArchiveRequest[]): Promise<void> => {
    for (const request of requests) {
      if (request.refusal === null) continue;
      const { archiveId, file, refusal } = request;
      if (await withdrawArchive(pool, folder, request))
        logger.error({ archiveId, file, reason: refusal }, 'archive request refused');
    }
  };

  /** Waits until the archiver has settled the request. Returns the number of events that left. */
  const waitForArchiver = async (folder: string, archiveId: string, signal: AbortSignal): Promise<number> => {
    const deadline = performance.now() + waitMs;
    while (performance.now() < deadline) {
      signal.throwIfAborted();
      const requests = await listArchiveRequests(pool);
      await withdrawRefused(folder, requests);
      if (!requests.some((request) => request.archiveId === archiveId && request.refusal === null))
        return (await listArchives(pool)).find((known) => known.archiveId === archiveId)?.events ?? 0;
      await sleep(POLL_MS, signal);
    }
    logger.warn({ archiveId }, 'archive request waits');
    return 0;
  };

  return async (signal) => {
    if (retention === null) return 0;
    const { folder, days } = retention;
    const requests = await listArchiveRequests(pool);
    await withdrawRefused(folder, requests);
    const waiting = requests.find(({ refusal }) => refusal === null);
    const before = cutOffTime(clock, days);
    const request =
      waiting ??
      (await proposeArchive({ pool, folder, rules: REST_RULES, before: { time: before }, signal }));
    if (request === null) return 0;
    const { archiveId, file } = request;
    const events = await waitForArchiver(folder, archiveId, signal);
    if (events === 0) return 0;
    archived.add(events);
    logger.info({ events, file, archiveId, before }, 'old events archived');
    return events;
  };
};
