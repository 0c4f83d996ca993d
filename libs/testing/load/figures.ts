import { execFile } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';

/** A measured value and its bound: one row of the nightly table. */
export interface Figure {
  /** Name of the figure, e.g. `agent: p99 of resume after kill -9`. */
  readonly what: string;
  readonly value: number;
  /** E.g. `ms`, `×`, `%`; empty for a count. */
  readonly unit?: string;
  readonly atMost?: number;
  readonly atLeast?: number;
}

/** File to which `npm run test:nightly` has figures appended, one JSON object a line. */
const FIGURES_FILE = 'ANTIPHON_FIGURES_FILE';

/** Returns the value below which `part` of the values lie (0 ≤ part ≤ 1); NaN without values. */
export const percentile = (values: readonly number[], part: number): number => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
};

const rounded = (value: number): string => String(Number(value.toPrecision(4)));

const boundOf = ({ atMost, atLeast, unit = '' }: Figure): string =>
  [
    atLeast === undefined ? '' : `at least ${rounded(atLeast)} ${unit}`.trim(),
    atMost === undefined ? '' : `at most ${rounded(atMost)} ${unit}`.trim(),
  ]
    .filter(Boolean)
    .join(', ');

/** NaN is within no bound. */
const isWithin = ({ value, atMost, atLeast }: Figure): boolean =>
  (atMost === undefined || value <= atMost) && (atLeast === undefined || value >= atLeast);

/** Prints a line of a test's report. */
export const report = (line: string): void => void process.stdout.write(`  ${line}\n`);

/** Prints a figure and records it for the nightly table. Throws when it is out of its bound. */
export const checkFigure = (figure: Figure): void => {
  const bound = boundOf(figure);
  const shown = `${rounded(figure.value)} ${figure.unit ?? ''}`.trim();
  const ok = isWithin(figure);
  const line = `${figure.what}: ${shown}${bound === '' ? '' : ` (${bound})`}`;
  report(line);
  const path = process.env[FIGURES_FILE];
  const row = { what: figure.what, figure: shown, bound, ok };
  if (path !== undefined) appendFileSync(path, `${JSON.stringify(row)}\n`);
  if (!ok) throw new Error(`out of bound: ${line}`);
};

/** Distribution of the ratios of paired measurements. */
export interface RatioSummary {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

export const summarizeRatios = (ratios: readonly number[]): RatioSummary => {
  const [low, median, high] = [0.25, 0.5, 0.75].map((part) => percentile(ratios, part)) as [
    number,
    number,
    number,
  ];
  return { median, low, high };
};

/**
 * Returns the factor by which a noisy machine may raise a median of ratios, at most `cap`. Controls
 * compare the unfaulted baseline with itself in the same run. The factor is 1 plus half of the 95 %
 * interval of their median: 1.57 × the interquartile range / √n (McGill, Tukey, Larsen 1978). The
 * direction of a control has no meaning, so each ratio counts with its inverse.
 */
export const noiseAllowance = (controls: readonly number[], cap: number): number => {
  if (controls.length === 0) return 1;
  const { low, high } = summarizeRatios(controls.flatMap((ratio) => [ratio, 1 / ratio]));
  return Math.min(cap, 1 + (1.57 * (high - low)) / Math.sqrt(controls.length));
};

/** Uses a processor for 400 ms, and prints its real time over its processor time. */
const SPIN = `
const cpu = process.cpuUsage(), from = performance.now();
while (performance.now() - from < 400);
const used = process.cpuUsage(cpu);
console.log(Math.max(1, ((performance.now() - from) * 1000) / (used.user + used.system)));
`;
const SAMPLES = 3;

const spin = async (): Promise<number> => {
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', SPIN], {
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  return Number(stdout);
};

/**
 * Measures the slowdown of work on all processors by other programs. An idle machine has 1, and 2
 * means that others use half of the time. Call it while the stack under test is idle.
 */
export const measureContention = async (): Promise<number> => {
  const samples: number[] = [];
  for (let sample = 0; sample < SAMPLES; sample++)
    samples.push(...(await Promise.all(Array.from({ length: availableParallelism() }, spin))));
  return samples.reduce((sum, factor) => sum + factor, 0) / samples.length;
};
