import { createBoundedMap, toAppError } from '@antiphon/kernel';

/** A value, and whether it comes from the cache. */
export interface Cached<T> {
  readonly value: T;
  readonly stale: boolean;
}

/** Maximum number of workspaces whose last value is stored. */
const MAX_WORKSPACES = 1_000;

/**
 * Creates a reader that falls back to a workspace's last value while an engine is down. Without a
 * value so far, and for errors that are not transient, the error of `read` is thrown.
 */
export const createStaleCache = <T>(
  read: (workspace: string) => Promise<T>,
): ((workspace: string) => Promise<Cached<T>>) => {
  const values = createBoundedMap<{ readonly value: T }>(MAX_WORKSPACES);
  return async (workspace) => {
    try {
      const value = await read(workspace);
      values.put(workspace, { value });
      return { value, stale: false };
    } catch (error) {
      const last = values.get(workspace);
      if (last === undefined || toAppError(error).kind !== 'transient') throw error;
      return { ...last, stale: true };
    }
  };
};
