import type { EngineStatusChange } from '@antiphon/contracts/gateway';
import type { HealthReport } from '@antiphon/contracts/messaging';
import type { Clock } from '@antiphon/kernel';
import { isoTime } from '@antiphon/kernel';
import { ALL_WELL, judgeEngines } from './engine-news.js';

/** Time between two looks at the engines, ms; a check itself takes at most a second. */
const EVERY_MS = 1_000;

export interface EngineWatch {
  /** What a client that comes now has to know; null while all is well. */
  current(): EngineStatusChange | null;
  stop(): void;
}

/** Looks at the engines by the gateway's own checks, and tells when one goes and when it is back. */
export const watchEngines = (
  report: () => Promise<HealthReport>,
  clock: Clock,
  tell: (news: EngineStatusChange) => void,
): EngineWatch => {
  let state = ALL_WELL;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const look = async (): Promise<void> => {
    const { checks } = await report();
    const judged = judgeEngines(state, checks, isoTime(clock));
    state = judged.state;
    if (judged.news && !stopped) tell(judged.news);
  };
  const again = (): void => {
    if (!stopped) timer = setTimeout(() => void look().finally(again), EVERY_MS).unref();
  };
  again();

  return {
    current: () => state.told,
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
};
