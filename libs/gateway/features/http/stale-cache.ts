import { toAppError } from '@antiphon/kernel';

/** A value, and whether it comes from the cache. */
export interface Cached<T> {
  readonly value: T;
  readonly stale: boolean;
}

/**
 * Creates a reader that falls back to the last value while an engine is down. Without a value so
 * far, and for errors that are not transient, the error of `read` is thrown.
 */
export const createStaleCache = <T>(read: () => Promise<T>): (() => Promise<Cached<T>>) => {
  let last: { readonly value: T } | null = null;
  return async () => {
    try {
      last = { value: await read() };
      return { ...last, stale: false };
    } catch (error) {
      if (last === null || toAppError(error).kind !== 'transient') throw error;
      return { ...last, stale: true };
    }
  };
};
