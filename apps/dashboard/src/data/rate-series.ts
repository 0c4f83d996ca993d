import type { RouteReply } from '@antiphon/client';
import type { Point } from './time-series.js';

export type Rates = RouteReply<'readRates'>;
export type RateBucket = Rates['buckets'][number];

/** Time that the charts of rates cover. */
export interface RateSpan {
  readonly name: Rates['span'];
  readonly words: string;
}

export const RATE_SPANS: readonly [RateSpan, RateSpan, RateSpan] = [
  { name: '1h', words: '1 hour' },
  { name: '24h', words: '24 hours' },
  { name: '30d', words: '30 days' },
];

/** Returns the span with a name; an hour for any other text. */
export const rateSpanOf = (name: string): RateSpan =>
  RATE_SPANS.find((span) => span.name === name) ?? RATE_SPANS[0];

const STEP_WORDS: readonly (readonly [seconds: number, words: string])[] = [
  [60, 'minute'],
  [600, '10 minutes'],
  [3_600, 'hour'],
  [14_400, '4 hours'],
];

/** `minute`, `10 minutes`. */
export const stepWords = ({ step }: Pick<Rates, 'step'>): string =>
  STEP_WORDS.find(([seconds]) => seconds === step)?.[1] ?? `${step} s`;

/** Times of the beginnings of all steps, ms. As of a position, a minute counts once it had ended. */
const stepsOf = ({ step, since, until, position }: Rates): readonly number[] => {
  const [start, stepMs] = [Date.parse(since), step * 1_000];
  const unit = (step === 3_600 ? step : 60) * 1_000;
  const end = position === undefined ? Date.parse(until) : Math.floor(Date.parse(until) / unit) * unit - 1;
  const count = Math.max(0, Math.floor((end - start) / stepMs) + 1);
  return Array.from({ length: count }, (_, index) => start + index * stepMs);
};

const byTime = ({ buckets }: Rates): ReadonlyMap<number, RateBucket> =>
  new Map(buckets.map((bucket) => [Date.parse(bucket.at), bucket]));

/** Returns a sum for each step, the oldest first. A step without an event is 0; null is not known. */
export const sumsOf = (rates: Rates, valueOf: (bucket: RateBucket) => number | null): readonly Point[] => {
  const found = byTime(rates);
  return stepsOf(rates).map((at) => {
    const bucket = found.get(at);
    return { at, value: bucket ? valueOf(bucket) : 0 };
  });
};

/** Returns the level at the end of each step, the oldest first. Without an event it stays. */
export const levelsOf = (
  rates: Rates,
  before: number,
  levelOf: (bucket: RateBucket) => number,
): readonly Point[] => {
  const found = byTime(rates);
  let value = before;
  return stepsOf(rates).map((at) => {
    const bucket = found.get(at);
    if (bucket) value = levelOf(bucket);
    return { at, value };
  });
};
