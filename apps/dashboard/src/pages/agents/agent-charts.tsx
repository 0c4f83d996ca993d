import type { RouteReply } from '@antiphon/client';
import { cpuPercent, formatPercent } from './agent-load.js';
import { bucketRows, spanOf, SPANS, type Span } from './agent-spans.js';
import { useParam } from '../../data/router.js';
import { useRead } from '../../data/use-read.js';
import { serverNow } from '../../data/gateway.js';
import { formatBytes, formatCompact, formatNumber } from '../../ui/format.js';
import { TimeChart } from '../../ui/time-chart.js';
import { Empty, Loading, Panel, ProblemBox } from '../../ui/ui.js';
import { useLiveSamples } from '../../data/agent-live.js';
import { SpanButtons } from '../span-buttons.js';
import css from '../pages.module.css';

type Sample = RouteReply<'readMetrics'>['samples'][number];

interface ChartKind {
  readonly label: string;
  readonly shape: 'line' | 'columns';
  readonly of: (sample: Sample, span: Span) => number;
  /** Value of a time without a sample; null where it is not known. */
  readonly idle: number | null;
  readonly format: (value: number) => string;
  readonly unit: string;
}

const CHARTS: readonly ChartKind[] = [
  {
    ...{ label: 'Processor', shape: 'line', idle: 0, format: formatPercent, unit: '% of one processor' },
    of: ({ cpuMs }, { step }) => cpuPercent({ cpuMs: (cpuMs * 30) / step }),
  },
  {
    ...{ label: 'Memory', shape: 'line', idle: null, format: formatBytes, unit: 'bytes, the most' },
    of: ({ memoryBytes }) => memoryBytes,
  },
  {
    ...{ label: 'Disk', shape: 'line', idle: null, format: formatBytes, unit: 'bytes of its folder' },
    of: ({ diskBytes }) => diskBytes,
  },
  {
    ...{ label: 'Tokens', shape: 'columns', idle: 0, format: formatCompact, unit: 'tokens, in and out' },
    of: ({ inputTokens, outputTokens }) => inputTokens + outputTokens,
  },
];

interface ChartProps {
  readonly kind: ChartKind;
  readonly span: Span;
  readonly samples: readonly Sample[];
  readonly until: number;
  readonly agentId: string;
}

const Chart = ({ kind, span, samples, until, agentId }: ChartProps) => {
  const { label, shape, of, idle, format, unit } = kind;
  const values = samples.map((sample) => of(sample, span));
  const sum = values.reduce((total, value) => total + value, 0);
  const most = format(Math.max(0, ...values));
  const figures =
    shape === 'columns'
      ? `${formatNumber(sum)} in ${span.words}, at most ${most} in ${span.stepWords}`
      : `at most ${most} in ${span.words}`;
  return (
    <Panel title={label} isPadded className={css.half}>
      <TimeChart
        label={`${label} of ${agentId}`}
        summary={`${label}: ${figures} (${unit}).`}
        shape={shape}
        series={[`${label}, ${unit}`]}
        rows={bucketRows(samples, span, until, (sample) => of(sample, span), idle)}
        time="Time"
        file={`${agentId}-${label.toLowerCase()}-${span.name}.csv`}
        format={format}
      />
    </Panel>
  );
};

/** Processor, memory, disk and tokens of an agent over an hour, a day or a month. */
export const AgentCharts = ({ agentId }: { readonly agentId: string }) => {
  const span = spanOf(useParam('span'));
  const { limit, step } = span;
  const { data, problem, refresh } = useRead(
    'readMetrics',
    { params: { id: agentId }, query: { limit, step } },
    {},
  );
  const live = useLiveSamples(agentId);
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="the metrics" />;
  // Samples that came since the read. Those of a longer step are in the next read.
  const newer = span.name === '1h' ? live.toReversed() : [];
  const known = new Set(newer.map(({ at }) => at));
  const samples = [...newer, ...data.samples.filter(({ at }) => !known.has(at))];
  const until = data.position === undefined ? serverNow() : Date.parse(samples[0]?.at ?? '') || serverNow();
  return (
    <div className={css.stack}>
      <SpanButtons spans={SPANS} current={span.name} />
      {samples.length === 0 ? (
        <Empty title="No sample yet">
          <p>An agent that works is measured every 30 seconds. One that does nothing has no samples.</p>
        </Empty>
      ) : (
        <div className={css.grid}>
          {CHARTS.map((kind) => (
            <Chart key={kind.label} {...{ kind, span, samples, until, agentId }} />
          ))}
        </div>
      )}
    </div>
  );
};
