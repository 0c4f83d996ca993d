/** A map with a maximum number of entries. It evicts the entry that was written first. */
export interface BoundedMap<V> {
  get(key: string): V | undefined;
  /** Writes an entry as the newest one. */
  put(key: string, value: V): void;
  delete(key: string): void;
  clear(): void;
}

/** Creates a map of at most `max` entries, at least 1. */
export const createBoundedMap = <V>(max: number): BoundedMap<V> => {
  const entries = new Map<string, V>();
  return {
    get: (key) => entries.get(key),
    put: (key, value) => {
      entries.delete(key);
      entries.set(key, value);
      const oldest = entries.keys().next();
      if (entries.size > max && !oldest.done) entries.delete(oldest.value);
    },
    delete: (key) => void entries.delete(key),
    clear: () => entries.clear(),
  };
};
