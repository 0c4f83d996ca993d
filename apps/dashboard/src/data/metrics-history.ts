import type { RouteReply } from '@antiphon/client';
import { client, serverNow } from './gateway.js';
import { addCounted, COUNTED_TYPES, type LogAmounts } from './log-amounts.js';
import { parseMetrics, type Sample } from './metrics-text.js';
import { createStore } from './store.js';
import { keepRecent, SPAN_MS } from './time-series.js';
import { toProblem, type Problem } from './use-read.js';

/** Levels and counters at the time of one read, ms. A figure that was not readable is null. */
export interface Reading {
  readonly at: number;
  /** Position of the newest event of the log. */
  readonly head: number | null;
  /** Number of events that the slowest read model has not applied. */
  readonly lag: number | null;
  /** Number of appends of this gateway that wait for the log. */
  readonly waiting: number | null;
}

/** Reads of this tab. They stay while another page is shown. */
export interface MetricsHistory {
  readonly readings: readonly Reading[];
  readonly amounts: LogAmounts | null;
  /** Reason for which the newest read of the log failed. */
  readonly problem: Problem | null;
}

const NOTHING: MetricsHistory = { readings: [], amounts: null, problem: null };
export const metricsHistory = createStore(NOTHING);

type Page = RouteReply<'readEvents'>;

/** Number of pages that one round reads at most. The next round continues after them. */
const MAX_PAGES = 5;

/** Reads the counted events after a position, oldest first. */
const readPages = async (after: number, signal: AbortSignal): Promise<readonly Page[]> => {
  const since = new Date(serverNow() - SPAN_MS).toISOString();
  const query = { type: COUNTED_TYPES, limit: 1_000, since, ...(after > 0 ? { after } : {}) };
  const pages: Page[] = [];
  let cursor: string | null = null;
  do {
    const next: Partial<Record<'cursor', string>> = cursor === null ? {} : { cursor };
    const page: Page = await client.http.readEvents({ query: { ...query, ...next }, signal });
    pages.push(page);
    cursor = page.nextCursor;
  } while (cursor !== null && pages.length < MAX_PAGES);
  return pages;
};

const readAmounts = async (signal: AbortSignal): Promise<LogAmounts | null> => {
  const before = metricsHistory.get().amounts;
  const pages = await readPages(before?.position ?? 0, signal);
  const { head = 0, position = 0, nextCursor = null } = pages.at(-1) ?? {};
  // The log was restored to an earlier position: what was known is no fact any more.
  if (before && head < before.position) return null;
  const events = pages.flatMap((page) => page.events);
  const isComplete = nextCursor === null;
  // A search that found nothing yet leaves what was known before.
  if (!isComplete && events.length === 0) return before;
  return addCounted(before, { events, isComplete, position, readAt: serverNow() });
};

const valueOf = <T>(result: PromiseSettledResult<T>): T | null =>
  result.status === 'fulfilled' ? result.value : null;

const waitingIn = (samples: readonly Sample[]): number =>
  samples.find(({ name }) => name === 'antiphon_appends_waiting')?.value ?? 0;

/**
 * Reads the metrics of the gateway with the time of the reply. It records them and the state of the
 * log for the charts. A failure of one read is a gap in its own chart only.
 */
export const readMetrics = async (signal: AbortSignal) => {
  const [metrics, models, counted] = await Promise.allSettled([
    client.http.metrics({ signal }),
    client.http.listProjections({ signal }),
    readAmounts(signal),
  ]);
  signal.throwIfAborted();
  // The clock of this machine: that of the gateway is known to a second only, which bends rates.
  const at = Date.now();
  const log = valueOf(models);
  const text = valueOf(metrics);
  const reading: Reading = {
    at,
    head: log?.head ?? null,
    // Only operators of the installation get positions of the whole log.
    lag:
      log === null || log.head === null ? null : Math.max(0, ...log.projections.map(({ lag }) => lag ?? 0)),
    waiting: text === null ? null : waitingIn(parseMetrics(text)),
  };
  metricsHistory.update(({ readings, amounts }) => ({
    readings: keepRecent([...readings, reading], at),
    amounts: counted.status === 'fulfilled' ? counted.value : amounts,
    problem: counted.status === 'rejected' ? toProblem(counted.reason) : null,
  }));
  if (metrics.status === 'rejected') throw metrics.reason;
  return { text: metrics.value, at: new Date(at).toISOString() };
};
