import { createBoundedMap, toAppError } from '@antiphon/kernel';

/** A value, and whether it comes from the cache. */
export interface Cached<T> {
  readonly value: T;
  readonly stale: boolean;
}

/** Maximum number of keys whose last value is stored. */
const MAX_KEYS = 1_000;

/**
 * Creates a reader that falls back to the last value of a key, such as a workspace, while an engine
 * is down. Without a value so far, and for errors that are not transient, it throws the error of
 * `read`.
 */
export const createStaleCache = <T, Key extends string | object = string>(
  read: (key: Key) => Promise<T>,
): ((key: Key) => Promise<Cached<T>>) => {
  const values = createBoundedMap<{ readonly value: T }>(MAX_KEYS);
  return async (key) => {
    const name = JSON.stringify(key);
    try {
      const value = await read(key);
      values.put(name, { value });
      return { value, stale: false };
    } catch (error) {
      const last = values.get(name);
      if (last === undefined || toAppError(error).kind !== 'transient') throw error;
      return { ...last, stale: true };
    }
  };
};
