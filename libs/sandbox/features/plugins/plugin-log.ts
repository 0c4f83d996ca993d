import { AsyncLocalStorage } from 'node:async_hooks';
import type { Logger } from '@antiphon/observability';
import type { CellListener } from '../cell/exchange.js';

const LINES_PER_WINDOW = 100;
const WINDOW_MS = 10_000;

/** Rate limit of log lines: counts them in windows of 10 s. */
class LogWindow {
  private startedAt = -Infinity;
  private lines = 0;

  constructor(private readonly now: () => number) {}

  /** Counts a line and returns whether to write it; `last` fills the window. */
  countLine(): 'write' | 'last' | 'drop' {
    if (this.now() - this.startedAt >= WINDOW_MS) {
      this.startedAt = this.now();
      this.lines = 0;
    }
    this.lines += 1;
    if (this.lines < LINES_PER_WINDOW) return 'write';
    return this.lines === LINES_PER_WINDOW ? 'last' : 'drop';
  }
}

/**
 * Creates a listener that writes a plug-in's log lines as data, with one rate limit for all calls.
 */
export const createPluginLog = (
  plugin: string,
  logger: Logger,
  now = () => performance.now(),
): CellListener => {
  const window = new LogWindow(now);
  return {
    onLog: ({ level, text }) => {
      const verdict = window.countLine();
      if (verdict === 'drop') return;
      logger[level]({ plugin, line: text }, 'plugin log line');
      if (verdict === 'last') logger.warn({ plugin }, 'plugin log lines suppressed');
    },
    onFlood: () => logger.warn({ plugin }, 'call log lines suppressed'),
    onSuppressed: (lines) => logger.warn({ plugin, suppressed: lines }, 'suppressed call log lines counted'),
  };
};

/**
 * Binds a listener to the current request's ids. Log lines arrive on a pipe that all calls share,
 * so they have no context of their own.
 */
export const bindToCallerContext = (listener: CellListener): CellListener => {
  const runInContext = AsyncLocalStorage.snapshot();
  return {
    onLog: (line) => runInContext(listener.onLog, line),
    onFlood: () => runInContext(listener.onFlood),
    onSuppressed: (lines) => runInContext(listener.onSuppressed, lines),
  };
};
