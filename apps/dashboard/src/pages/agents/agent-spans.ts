import type { ChartRow } from '../../ui/chart-scale.js';

/** Time that charts of an agent show, in steps of one sample each. */
export interface Span {
  readonly name: '1h' | '24h' | '30d';
  readonly words: string;
  /** Seconds of a step. */
  readonly step: number;
  readonly stepWords: string;
  /** Number of steps. */
  readonly limit: number;
}

export const SPANS: readonly [Span, Span, Span] = [
  { name: '1h', words: '1 hour', step: 30, stepWords: '30 s', limit: 120 },
  { name: '24h', words: '24 hours', step: 600, stepWords: '10 min', limit: 144 },
  { name: '30d', words: '30 days', step: 14_400, stepWords: '4 h', limit: 180 },
];

/** Returns the span with a name; an hour for any other text. */
export const spanOf = (name: string): Span => SPANS.find((span) => span.name === name) ?? SPANS[0];

/** Returns one row for each step up to a time, oldest first. A step without a sample is `idle`. */
export const bucketRows = <T extends { readonly at: string }>(
  samples: readonly T[],
  { step, limit }: Span,
  until: number,
  valueOf: (sample: T) => number,
  idle: number | null,
): readonly ChartRow[] => {
  const stepMs = step * 1_000;
  const bucketOf = (ms: number): number => Math.floor(ms / stepMs);
  const found = new Map(samples.map((sample) => [bucketOf(Date.parse(sample.at)), sample]));
  const last = bucketOf(until);
  return Array.from({ length: limit }, (_, index) => {
    const bucket = last - limit + 1 + index;
    const sample = found.get(bucket);
    return { at: bucket * stepMs, values: [sample ? valueOf(sample) : idle] };
  });
};
