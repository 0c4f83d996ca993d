/**
 * Races `work` against `signal`. Rejects with the signal's reason on abort; `work` keeps running
 * and its late outcome is ignored.
 */
export const abortable = async <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
  if (signal.aborted) {
    work.catch(() => undefined);
    throw signal.reason as Error;
  }
  let onAbort: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
};

/** Like `abortable`, but gives `work` another `graceMs` after the abort before it rejects. */
export const abortableWithGrace = async <T>(
  work: Promise<T>,
  signal: AbortSignal,
  graceMs: number,
): Promise<T> => {
  const graceOver = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const startGrace = (): void => {
    timer = setTimeout(() => graceOver.abort(signal.reason), graceMs);
  };
  if (signal.aborted) startGrace();
  else signal.addEventListener('abort', startGrace, { once: true });
  try {
    return await abortable(work, graceOver.signal);
  } finally {
    signal.removeEventListener('abort', startGrace);
    clearTimeout(timer);
  }
};

/** Settles as `work` does, or rejects with `onTimeout()` after `ms`; `work` keeps running. */
export const withTimeout = async <T>(work: Promise<T>, ms: number, onTimeout: () => Error): Promise<T> => {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timedOut = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(onTimeout()), ms);
  });
  try {
    return await Promise.race([work, timedOut]);
  } finally {
    clearTimeout(timer);
  }
};
