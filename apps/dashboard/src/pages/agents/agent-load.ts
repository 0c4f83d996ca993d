import type { RouteReply } from '@antiphon/client';
import { formatBytes } from '../../ui/format.js';
import { roundUp, type ChartRow } from '../../ui/chart-scale.js';

type Metrics = RouteReply<'listAgentMetrics'>['agents'][number];
type Agent = RouteReply<'listAgents'>['agents'][number];
export type AgentSample = Metrics['recent'][number];

/** Time that a sample covers, ms. */
export const SAMPLE_MS = 30_000;
/** Time that a course covers up to the newest sample, ms. */
const COURSE_MS = 30 * 60_000;
/** Time after which a missing sample is a gap, ms. */
const GAP_MS = 2 * SAMPLE_MS;

/** Returns the share of one processor that a sample used, in percent. */
export const cpuPercent = ({ cpuMs }: Pick<AgentSample, 'cpuMs'>): number => (cpuMs / SAMPLE_MS) * 100;

/** `0.4 %`, `12 %`. */
export const formatPercent = (percent: number): string =>
  `${percent > 0 && percent < 10 ? percent.toFixed(1) : Math.round(percent)} %`;

/** Course of one value of an agent, as a small chart draws it. */
export interface Course {
  readonly label: string;
  readonly text: string;
  readonly tip: string;
  readonly rows: readonly ChartRow[];
  readonly top: number;
}

/**
 * Returns rows of the 30 minutes up to the newest sample. An agent that did not work has no sample:
 * its processor time is zero then, and its memory is not known.
 */
const rowsOf = (
  samples: readonly AgentSample[],
  valueOf: (sample: AgentSample) => number,
  idle: number | null,
): readonly ChartRow[] => {
  const start = Date.parse(samples.at(-1)?.at ?? '') - COURSE_MS;
  let before = start - SAMPLE_MS;
  return samples.flatMap((sample): readonly ChartRow[] => {
    const at = Date.parse(sample.at);
    if (at < start) return [];
    const gap = at - before > GAP_MS ? [before + SAMPLE_MS, at - SAMPLE_MS] : [];
    before = at;
    return [...gap.map((time) => ({ at: time, values: [idle] })), { at, values: [valueOf(sample)] }];
  });
};

interface Value {
  readonly label: string;
  readonly of: (sample: AgentSample) => number;
  readonly format: (value: number) => string;
  readonly idle: number | null;
}
const VALUES: readonly Value[] = [
  { label: 'CPU', of: cpuPercent, format: formatPercent, idle: 0 },
  { label: 'Memory', of: ({ memoryBytes }) => memoryBytes, format: formatBytes, idle: null },
  { label: 'Disk', of: ({ diskBytes }) => diskBytes, format: formatBytes, idle: null },
];

/** Returns the processor time, memory and disk of an agent; nothing without a sample. */
export const coursesOf = ({ latest, recent }: Metrics): readonly Course[] => {
  if (!latest) return [];
  const samples = recent.length > 0 ? recent : [latest];
  return VALUES.map(({ label, of, format, idle }) => {
    const values = samples.map(of);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    return {
      ...{ label, text: format(of(latest)) },
      tip: `${label}: ${format(least)} to ${format(most)} in ${samples.length} samples of 30 s`,
      rows: rowsOf(samples, of, idle),
      top: roundUp(most),
    };
  });
};

/** Returns the time at which an agent last worked; null if it has had no turn. */
export const workedAtOf = (
  { lastSeenAt, lastTurnAt = null }: Pick<Agent, 'lastSeenAt' | 'lastTurnAt'>,
  metrics?: Pick<Metrics, 'latest'>,
): string | null =>
  [lastSeenAt, lastTurnAt, metrics?.latest?.at ?? null]
    .filter((at) => at !== null)
    .toSorted()
    .at(-1) ?? null;
