/** A map that holds so many entries at most: what was put into it longest ago goes first. */
export interface BoundedMap<V> {
  get(key: string): V | undefined;
  /** Puts an entry in, as the newest one. */
  put(key: string, value: V): void;
  delete(key: string): void;
  clear(): void;
}

/** `max`: at least 1. */
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
