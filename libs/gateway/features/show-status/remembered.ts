import { toAppError } from '@antiphon/kernel';

/** What was asked for, and whether it is only what was answered the last time. */
export interface Remembered<T> {
  readonly value: T;
  readonly stale: boolean;
}

/**
 * Asks, and answers from memory while an engine is down. A question that was never answered fails with the engine's
 * error; so does every other failure.
 */
export const rememberAnswers = <T>(ask: () => Promise<T>): (() => Promise<Remembered<T>>) => {
  let last: { readonly value: T } | null = null;
  return async () => {
    try {
      last = { value: await ask() };
      return { ...last, stale: false };
    } catch (error) {
      if (last === null || toAppError(error).kind !== 'transient') throw error;
      return { ...last, stale: true };
    }
  };
};
