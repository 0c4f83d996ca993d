import { useEffect, useRef, useState } from 'react';
import { pollDelay } from './poll-delay.js';
import type { Read } from './use-read.js';

/**
 * Repeats a read, later after each failure in a row. A hidden tab makes no read, and reads at once
 * when it is shown again.
 */
export const usePolling = ({ data, problem, refresh }: Read<unknown>): void => {
  // An answer that equals the one before renders nothing, and the reads continue after it.
  const [reads, setReads] = useState(0);
  const failed = useRef({ last: problem, inRow: 0 });
  useEffect(() => {
    const { last, inRow } = failed.current;
    if (problem !== last) failed.current = { last: problem, inRow: problem ? inRow + 1 : 0 };
    const read = (): void => {
      removeEventListener('visibilitychange', readIfShown);
      refresh();
      setReads((count) => count + 1);
    };
    const readIfShown = (): void => {
      if (document.visibilityState === 'visible') read();
    };
    const timer = setTimeout(() => {
      if (document.visibilityState === 'visible') read();
      else addEventListener('visibilitychange', readIfShown);
    }, pollDelay(failed.current.inRow));
    return () => {
      clearTimeout(timer);
      removeEventListener('visibilitychange', readIfShown);
    };
  }, [data, problem, refresh, reads]);
};
