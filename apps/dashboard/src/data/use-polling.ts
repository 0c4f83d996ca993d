import { useEffect, useRef } from 'react';
import { pollDelay } from './poll-delay.js';
import type { Read } from './use-read.js';

/**
 * Repeats a read, later after each failure in a row. A hidden tab makes no read, and reads at once
 * when it is shown again.
 */
export const usePolling = ({ data, problem, refresh }: Read<unknown>): void => {
  const failures = useRef(0);
  useEffect(() => {
    failures.current = problem ? failures.current + 1 : 0;
    const read = (): void => {
      removeEventListener('visibilitychange', readIfShown);
      refresh();
    };
    const readIfShown = (): void => {
      if (document.visibilityState === 'visible') read();
    };
    const timer = setTimeout(() => {
      if (document.visibilityState === 'visible') read();
      else addEventListener('visibilitychange', readIfShown);
    }, pollDelay(failures.current));
    return () => {
      clearTimeout(timer);
      removeEventListener('visibilitychange', readIfShown);
    };
  }, [data, problem, refresh]);
};
