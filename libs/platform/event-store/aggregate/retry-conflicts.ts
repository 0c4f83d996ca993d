import { isAppError } from '@antiphon/kernel';

/** Returns whether an append met another version, of any stream or of the named one. */
export const isVersionConflict = (error: unknown, streamId?: string): boolean =>
  isAppError(error) &&
  error.code === 'LOG.VERSION_CONFLICT' &&
  (streamId === undefined || error.data['streamId'] === streamId);

export interface ConflictRetries {
  readonly maxRounds: number;
  /** Returns whether the next round can succeed. Default: after a version conflict. */
  readonly isStale?: (error: unknown, round: number) => boolean;
}

/** Calls `work` again after a version conflict, up to `maxRounds` times: optimistic concurrency. */
export const retryConflicts = async <T>(
  work: (round: number) => Promise<T>,
  { maxRounds, isStale = (error) => isVersionConflict(error) }: ConflictRetries,
): Promise<T> => {
  for (let round = 1; ; round++)
    try {
      return await work(round);
    } catch (error) {
      if (!isStale(error, round) || round === maxRounds) throw error;
    }
};
