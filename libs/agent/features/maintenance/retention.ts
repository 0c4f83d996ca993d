import { isAbsolute } from 'node:path';
import type { AntiphonConfig } from '@antiphon/config';
import { invalid } from '@antiphon/kernel';
import type { Environment } from '@antiphon/service-host';

/** Which event streams leave the log, and where to. */
export interface Retention {
  /** Absolute; files in it are part of the log from then on. */
  readonly folder: string;
  /** Whole days (UTC) for which a stream stays after its last event. */
  readonly days: number;
}

/**
 * Null where everything stays: without a folder that somebody has chosen to keep nothing leaves, and neither does it
 * with `events_days = 0`. Throws `SERVICE.BAD_ENVIRONMENT` for a relative folder: each process would mean another.
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
