import type { Logger } from '@antiphon/observability';
import { nextReplayIn, replayParked } from './projection-replay.js';
import type { ReplaySource, ReplayResult } from './projection-replay.js';

/** Tries the streams that a projection has stopped at again. */
export interface Retries {
  /** There is a stream to be tried. */
  expect(): void;
  /** Tries all of them, whatever was tried before: a fix arrives with a new start. */
  all(): Promise<void>;
  /** Tries those whose time has come; answers in how many ms the next one's comes. */
  due(): Promise<number>;
}

const SOON_MS = 50;

export const createRetries = (source: ReplaySource, logger: Logger): Retries => {
  const { name: projection } = source;
  let expected = false;

  const tell = ({ replayed, stillParked }: ReplayResult): void => {
    if (replayed > 0) logger.info({ projection, replayed }, 'streams that had waited were applied');
    for (const { error, willRetry, ...stream } of stillParked) {
      const fields = { err: error, projection, ...stream };
      if (willRetry) logger.warn(fields, 'an event could not be projected; it is tried again');
      else
        logger.error(
          { ...fields, alert: true },
          'an event could not be projected: its stream is parked, the others go on',
        );
    }
  };

  return {
    expect: () => void (expected = true),
    all: async () => {
      tell(await replayParked(source));
      expected = true;
    },
    due: async () => {
      if (!expected) return Infinity;
      const next = await nextReplayIn(source.pool, projection);
      if (next === null) expected = false;
      if (next === null || next > 0) return next ?? Infinity;
      tell(await replayParked(source, { onlyDue: true }));
      // Not at once: another process may be at it.
      return Math.max(SOON_MS, (await nextReplayIn(source.pool, projection)) ?? Infinity);
    },
  };
};
