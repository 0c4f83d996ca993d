import type pg from 'pg';
import { REST_RULES } from '@antiphon/contracts/events';
import { archiveEvents } from '@antiphon/event-store';
import type { Clock } from '@antiphon/kernel';
import { isoTime } from '@antiphon/kernel';
import { defineCounter } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import type { Retention } from './retention.js';

const left = defineCounter('antiphon_log_archived_events', 'Events that have left the log to archive files');

interface Deps {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly retention: Retention | null;
}

/** Lets one file of old events leave; answers how many did, 0 when none is left that may. */
export type ArchiveOldEvents = (signal: AbortSignal) => Promise<number>;

const DAY_MS = 24 * 3_600_000;

/** By whole days, so that what became old in a day leaves in one file, however often somebody looks. */
const cutTime = (clock: Clock, days: number): string => {
  const midnight = Date.parse(`${isoTime(clock).slice(0, 10)}T00:00:00.000Z`);
  return new Date(midnight - days * DAY_MS).toISOString();
};

/**
 * Makes the sweep that carries out retention (ADR 101). Safe to repeat, and to kill at any moment: a file is whole and
 * on the disk before its events leave, all in one transaction, and what has left is not found again. A file of which
 * nothing has left, since its writer was killed in between, is not named in the log, and means nothing.
 */
export const createArchiveOldEvents =
  ({ pool, clock, logger, retention }: Deps): ArchiveOldEvents =>
  async (signal) => {
    if (retention === null) return 0;
    const { folder, days } = retention;
    const time = cutTime(clock, days);
    const made = await archiveEvents({ pool, folder, rules: REST_RULES, before: { time }, signal });
    if (made === null) return 0;
    const { events, streams, file, archiveId } = made;
    left.add(events);
    logger.info({ events, streams, file, archiveId, before: time }, 'old events have left the log');
    return events;
  };
