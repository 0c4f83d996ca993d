import type { Reading } from '../../data/metrics-history.js';
import {
  levelsOf,
  rateSpanOf,
  stepWords,
  sumsOf,
  type RateBucket,
  type Rates,
} from '../../data/rate-series.js';
import { extentOf, withGaps, type Point } from '../../data/time-series.js';
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

/** Returns rows of several series with the same times. */
const joinRows = (...series: readonly (readonly Point[])[]): readonly ChartRow[] =>
  (series[0] ?? []).map(({ at }, index) => ({
    at,
    values: series.map((points) => points[index]?.value ?? null),
  }));

const inMinutes = (minutes: number): string => (minutes < 1 ? '' : ` in ${countOf(minutes, 'minute')}`);
const NOT_KNOWN = 'Nothing is known of this time.';

/** `5 turns in 1 hour, at most 3 in a minute; 2 in the last one.` */
const sumUp = (
  points: readonly Point[],
  rates: Rates,
  { format, of }: { readonly format: (value: number) => string; readonly of: string },
): string => {
  const extent = extentOf(points);
  if (!extent) return NOT_KNOWN;
  const { latest, most, sum } = extent;
  const step = stepWords(rates);
  const a = /^\d/.test(step) ? step : step === 'hour' ? 'an hour' : `a ${step}`;
  return `${format(sum)}${of} in ${rateSpanOf(rates.span).words}, at most ${format(most)} in ${a}; ${format(latest)} in the last one.`;
};

/** Shows a count of each step. */
export const countsView = (
  rates: Rates,
  noun: string,
  valueOf: (bucket: RateBucket) => number,
): ChartView => {
  const points = sumsOf(rates, valueOf);
  return { rows: toRows(points), summary: sumUp(points, rates, { format: formatNumber, of: ` ${noun}` }) };
};

/** Shows what the model calls that ended in each step cost. Not every caller may know it. */
export const costView = (rates: Rates): ChartView => {
  const isHidden = rates.buckets.some(({ microUsd }) => microUsd === null);
  const points = sumsOf(rates, ({ microUsd }) => microUsd);
  if (isHidden)
    return {
      rows: points.map(({ at }) => ({ at, values: [null] })),
      summary: 'Costs need the permission budgets:read.',
    };
  return { rows: toRows(points, MICRO), summary: sumUp(points, rates, { format: formatUsd, of: '' }) };
};

/** Shows tokens that went to models and came from them. */
export const tokensView = (rates: Rates): ChartView => {
  const input = sumsOf(rates, ({ inputTokens }) => inputTokens);
  const output = sumsOf(rates, ({ outputTokens }) => outputTokens);
  const sums = [input, output].map((points) => formatNumber(extentOf(points)?.sum ?? 0));
  const both = input.map(({ at, value }, index) => ({
    at,
    value: (value ?? 0) + (output[index]?.value ?? 0),
  }));
  const text = sumUp(both, rates, { format: formatNumber, of: ` tokens (${sums[0]} in, ${sums[1]} out)` });
  return { rows: joinRows(input, output), summary: text };
};

/** Shows calls of models and of tools. */
export const callsView = (rates: Rates): ChartView => {
  const model = sumsOf(rates, ({ modelCalls }) => modelCalls);
  const tool = sumsOf(rates, ({ toolCalls }) => toolCalls);
  const text = sumUp(model, rates, { format: formatNumber, of: ' model calls' });
  const tools = countOf(extentOf(tool)?.sum ?? 0, 'tool call');
  return { rows: joinRows(model, tool), summary: `${text.slice(0, -1)}. ${tools}, ${mostOf(tool)}.` };
};

const mostOf = (points: readonly Point[]): string => `at most ${formatNumber(extentOf(points)?.most ?? 0)}`;

/** Shows the turns and tasks that had been accepted and had not ended. */
export const openView = (rates: Rates): ChartView => {
  const turns = levelsOf(rates, rates.openBefore.turns, ({ openTurns }) => openTurns);
  const tasks = levelsOf(rates, rates.openBefore.tasks, ({ openTasks }) => openTasks);
  const last = (points: readonly Point[], noun: string): string =>
    `${countOf(points.at(-1)?.value ?? 0, noun)}, ${mostOf(points)}`;
  return {
    rows: joinRows(turns, tasks),
    summary: `${last(turns, 'open turn')}; ${last(tasks, 'open task')} in ${rateSpanOf(rates.span).words}.`,
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
    rows: joinRows(behind, waiting),
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
