import { AsyncLocalStorage } from 'node:async_hooks';
import type { Logger } from '@antiphon/observability';
import type { CellListener } from '../cell/exchange.js';

const LINES_PER_WINDOW = 100;
const WINDOW_MS = 10_000;

/** Counts lines in windows of 10 s; `allow` says whether one more may be written. */
const createWindow = (now: () => number) => {
  let start = -Infinity;
  let lines = 0;
  return (): 'write' | 'last' | 'drop' => {
    if (now() - start >= WINDOW_MS) {
      start = now();
      lines = 0;
    }
    lines += 1;
    if (lines < LINES_PER_WINDOW) return 'write';
    return lines === LINES_PER_WINDOW ? 'last' : 'drop';
  };
};

/** Puts a plug-in's own log lines into the service's log, as data, at a bounded rate over all its calls. */
export const createPluginLog = (
  plugin: string,
  logger: Logger,
  now = () => performance.now(),
): CellListener => {
  const allow = createWindow(now);
  return {
    onLog: ({ level, text }) => {
      const verdict = allow();
      if (verdict === 'drop') return;
      logger[level]({ plugin, line: text }, 'a plug-in logs');
      if (verdict === 'last')
        logger.warn({ plugin }, 'a plug-in logs too much; its further lines are suppressed');
    },
    onFlood: () => logger.warn({ plugin }, 'a call logs too much; its further lines are suppressed'),
    onSuppressed: (lines) => logger.warn({ plugin, suppressed: lines }, 'lines of a call were suppressed'),
  };
};

/** Lines arrive on a pipe that all calls share; this gives them the ids of the request that is made right now. */
export const inCallersContext = (listener: CellListener): CellListener => {
  const inContext = AsyncLocalStorage.snapshot();
  return {
    onLog: (line) => inContext(listener.onLog, line),
    onFlood: () => inContext(listener.onFlood),
    onSuppressed: (lines) => inContext(listener.onSuppressed, lines),
  };
};
