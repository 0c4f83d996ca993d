import { client } from './gateway.js';
import { parseMetrics, type Sample } from './metrics-text.js';
import { createStore } from './store.js';
import { keepRecent } from './time-series.js';

/** Levels at the time of one read, ms. A figure that was not readable is null. */
export interface Reading {
  readonly at: number;
  /** Number of events that the slowest read model has not applied. */
  readonly lag: number | null;
  /** Number of appends of this gateway that wait for the log. */
  readonly waiting: number | null;
}

/** Readings of this tab, the oldest first. They stay while another page is shown. */
export const readings = createStore<readonly Reading[]>([]);

const valueOf = <T>(result: PromiseSettledResult<T>): T | null =>
  result.status === 'fulfilled' ? result.value : null;

const waitingIn = (samples: readonly Sample[]): number =>
  samples.find(({ name }) => name === 'antiphon_appends_waiting')?.value ?? 0;

/**
 * Reads the metrics of the gateway with the time of the reply, and records the lag of the read
 * models and the appends that wait. A failure of one read is a gap in its own line only.
 */
export const readMetrics = async (signal: AbortSignal) => {
  const [metrics, models] = await Promise.allSettled([
    client.http.metrics({ signal }),
    client.http.listProjections({ signal }),
  ]);
  signal.throwIfAborted();
  const at = Date.now();
  const log = valueOf(models);
  const text = valueOf(metrics);
  const reading: Reading = {
    at,
    // Only operators of the installation get positions of the whole log.
    lag:
      log === null || log.head === null ? null : Math.max(0, ...log.projections.map(({ lag }) => lag ?? 0)),
    waiting: text === null ? null : waitingIn(parseMetrics(text)),
  };
  readings.update((before) => keepRecent([...before, reading], at));
  if (metrics.status === 'rejected') throw metrics.reason;
  return { text: metrics.value, at: new Date(at).toISOString() };
};
