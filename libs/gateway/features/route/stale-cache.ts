import { toAppError } from '@antiphon/kernel';

/** A value, and whether it comes from the cache. */
export interface Cached<T> {
  readonly value: T;
  readonly stale: boolean;
}

/** Maximum number of keys whose last value is stored, and of UTF-16 units of all stored values. */
const MAX_KEYS = 1_000;
const MAX_CHARS = 16 * 1024 * 1024;

/** Last values as JSON. It evicts the value that was written first. */
class LastValues {
  readonly #texts = new Map<string, string>();
  #chars = 0;

  get(key: string): string | undefined {
    return this.#texts.get(key);
  }

  put(key: string, text: string): void {
    this.#delete(key);
    this.#texts.set(key, text);
    this.#chars += text.length;
    for (const oldest of this.#texts.keys()) {
      if (this.#texts.size <= MAX_KEYS && this.#chars <= MAX_CHARS) return;
      this.#delete(oldest);
    }
  }

  #delete(key: string): void {
    this.#chars -= this.#texts.get(key)?.length ?? 0;
    this.#texts.delete(key);
  }
}

/**
 * Creates a reader that falls back to the last value of a key, such as a workspace, while an engine
 * is down. Without a value so far, and for errors that are not transient, it throws the error of
 * `read`.
 */
export const createStaleCache = <T, Key extends string | object = string>(
  read: (key: Key) => Promise<T>,
): ((key: Key) => Promise<Cached<T>>) => {
  const values = new LastValues();
  return async (key) => {
    const name = JSON.stringify(key);
    try {
      const value = await read(key);
      values.put(name, JSON.stringify(value));
      return { value, stale: false };
    } catch (error) {
      const last = values.get(name);
      if (last === undefined || toAppError(error).kind !== 'transient') throw error;
      return { value: JSON.parse(last) as T, stale: true };
    }
  };
};
