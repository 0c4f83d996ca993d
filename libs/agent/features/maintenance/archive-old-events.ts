import { isAbsolute } from 'node:path';
import type pg from 'pg';
import type { AntiphonConfig } from '@antiphon/config';
import { REST_RULES } from '@antiphon/contracts/events';
import { archiveEvents } from '@antiphon/event-store';
import { invalid, isoTime } from '@antiphon/kernel';
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
  { retention: { eventsDays: days } }: Pick<AntiphonConfig, 'retention'>,
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
}

/** Archives one file of old events. Returns the number of events; 0 when none is left. */
export type ArchiveOldEvents = (signal: AbortSignal) => Promise<number>;

const DAY_MS = 24 * 3_600_000;

/** Returns the cut-off at a midnight, so that a day's expired events are archived in one file. */
const cutOffTime = (clock: Clock, days: number): string => {
  const midnight = Date.parse(`${isoTime(clock).slice(0, 10)}T00:00:00.000Z`);
  return new Date(midnight - days * DAY_MS).toISOString();
};

/**
 * Creates the sweep that applies retention (ADR 101). It is safe to repeat and to kill at any
 * moment. A file is complete and on disk before one transaction deletes its events. After a kill in
 * between, the log does not name the file, and readers ignore it.
 */
export const createArchiveOldEvents =
  ({ pool, clock, logger, retention }: Deps): ArchiveOldEvents =>
  async (signal) => {
    if (retention === null) return 0;
    const { folder, days } = retention;
    const time = cutOffTime(clock, days);
    const result = await archiveEvents({ pool, folder, rules: REST_RULES, before: { time }, signal });
    if (result === null) return 0;
    const { events, streams, file, archiveId } = result;
    archived.add(events);
    logger.info({ events, streams, file, archiveId, before: time }, 'old events archived');
    return events;
  };
