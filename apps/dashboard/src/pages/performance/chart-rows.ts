import type { Reading } from '../../data/metrics-history.js';
import type { LogAmounts } from '../../data/log-amounts.js';
import { extentOf, ratesOf, sumByMinute, withGaps, type Point } from '../../data/time-series.js';
import type { ChartRow } from '../../ui/chart-scale.js';
import { countOf, formatClock, formatNumber, formatUsd } from '../../ui/format.js';

/** Rows of a chart with the sentence that sums them up. */
export interface ChartView {
  readonly rows: readonly ChartRow[];
  readonly summary: string;
}

const MICRO = 1_000_000;
const DAY_MS = 86_400_000;
/** Number of days that the chart of days shows at most. */
export const MAX_DAYS = 30;

const toRows = (points: readonly Point[], unit = 1): readonly ChartRow[] =>
  points.map(({ at, value }) => ({ at, values: [value === null ? null : value / unit] }));

const inMinutes = (minutes: number): string => (minutes < 1 ? '' : ` in ${countOf(minutes, 'minute')}`);
const TOO_MANY = 'The last minute has more turns and charges than this page keeps.';

/** Shows the turns that began in each minute. */
export const turnsView = ({ turns, since, until }: LogAmounts): ChartView => {
  const points = sumByMinute(turns, { since, until });
  const extent = extentOf(points);
  if (!extent) return { rows: toRows(points), summary: TOO_MANY };
  const { latest, latestAt, most, sum, minutes } = extent;
  const before = `${countOf(latest, 'turn')} in the minute before ${formatClock(latestAt)}`;
  return {
    rows: toRows(points),
    summary: `${before}, at most ${formatNumber(most)} in a minute; ${formatNumber(sum)}${inMinutes(minutes + 1)}.`,
  };
};

/** Shows what the model calls that ended in each minute cost. */
export const costView = ({ charges, since, until }: LogAmounts): ChartView => {
  const points = sumByMinute(charges, { since, until });
  const extent = extentOf(points);
  if (!extent) return { rows: toRows(points, MICRO), summary: TOO_MANY };
  const { latest, latestAt, most, sum, minutes } = extent;
  const before = `${formatUsd(latest)} in the minute before ${formatClock(latestAt)}`;
  return {
    rows: toRows(points, MICRO),
    summary: `${before}, at most ${formatUsd(most)} in a minute; ${formatUsd(sum)}${inMinutes(minutes + 1)}.`,
  };
};

/** Shows the events that the log received per minute. The first rate needs two reads. */
export const eventsView = (readings: readonly Reading[]): ChartView | null => {
  const points = ratesOf(readings.map(({ at, head }) => ({ at, value: head })));
  const extent = extentOf(points);
  if (!extent) return null;
  const { latest, latestAt, most, minutes } = extent;
  const now = `${formatNumber(latest)} events a minute at ${formatClock(latestAt)}`;
  return {
    rows: toRows(points),
    summary: `${now}, at most ${formatNumber(most)}${inMinutes(minutes)}.`,
  };
};

/** Shows how far the slowest read model is behind, and the appends that wait. */
export const lagView = (readings: readonly Reading[]): ChartView | null => {
  const behind = withGaps(readings.map(({ at, lag }) => ({ at, value: lag })));
  const waiting = withGaps(readings.map(({ at, waiting: value }) => ({ at, value })));
  const extent = extentOf(behind);
  if (!extent) return null;
  const { latest, latestAt, most, minutes } = extent;
  const now = `The slowest read model is ${countOf(latest, 'event')} behind at ${formatClock(latestAt)}`;
  const appends = countOf(waiting.at(-1)?.value ?? 0, 'append');
  return {
    rows: behind.map(({ at, value }, index) => ({ at, values: [value, waiting[index]?.value ?? null] })),
    summary: `${now}, at most ${formatNumber(most)}${inMinutes(minutes)}. Waiting for the log: ${appends}.`,
  };
};

/** Cost of a UTC day. */
interface DayCost {
  readonly name: string;
  readonly settledMicroUsd: number;
}

/** Shows the cost of each day up to the newest one with a call. A day without a call costs nothing. */
export const daysView = (groups: readonly DayCost[]): ChartView | null => {
  const costs = new Map(groups.map(({ name, settledMicroUsd }) => [name, settledMicroUsd]));
  const newest = [...costs.keys()].toSorted().at(-1);
  const oldest = [...costs.keys()].toSorted()[0];
  if (newest === undefined || oldest === undefined) return null;
  const end = Date.parse(newest);
  const start = Math.max(Date.parse(oldest), end - (MAX_DAYS - 1) * DAY_MS);
  const count = Math.round((end - start) / DAY_MS) + 1;
  const days = Array.from({ length: count }, (_, index) => {
    const at = start + index * DAY_MS;
    return { at, microUsd: costs.get(new Date(at).toISOString().slice(0, 10)) ?? 0 };
  });
  const sum = days.reduce((all, { microUsd }) => all + microUsd, 0);
  const most = Math.max(...days.map(({ microUsd }) => microUsd));
  return {
    rows: days.map(({ at, microUsd }) => ({ at, values: [microUsd / MICRO] })),
    summary: `${formatUsd(costs.get(newest) ?? 0)} on ${newest}, at most ${formatUsd(most)} a day, ${formatUsd(sum)} in ${countOf(count, 'day')}.`,
  };
};
