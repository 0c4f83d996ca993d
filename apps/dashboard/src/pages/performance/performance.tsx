import { PageHead } from '../../app/page-head.js';
import {
  histogramsOf,
  labelsOf,
  parseMetrics,
  valuesOf,
  type Histogram,
  type Sample,
} from '../../data/metrics-text.js';
import { readMetrics } from '../../data/metrics-history.js';
import { usePolling } from '../../data/use-polling.js';
import { useFetched, useRead } from '../../data/use-read.js';
import { BarChart } from '../../ui/bar-chart.js';
import { formatDuration, formatNumber } from '../../ui/format.js';
import { PresentMark } from '../../ui/present-mark.js';
import { Tile } from '../overview.js';
import { css as ui, Empty, Loading, Panel, ProblemBox, Table, Time, numberColumn } from '../../ui/ui.js';
import css from '../pages.module.css';
import { Charts } from './charts.js';

const readable = (name: string): string =>
  name
    .replace(/^antiphon_/, '')
    .replace(/_(seconds|total)$/, '')
    .replaceAll('_', ' ');

/** Descriptions of the stages of a turn, by label. */
const STAGES: Readonly<Record<string, string>> = {
  'stage=request_sent': 'from the message of a client to the request to the agent',
  'stage=turn_accepted': 'from that request to the accepted turn',
  'stage=first_text_sent': 'from the accepted turn to the first text',
  'stage=done_sent': 'from the first text to the end of the turn',
  'stage=frame_delivered': 'from a frame of the agent to its client',
};

/** Number of observations from which on a percentile says something. */
const MIN_OBSERVATIONS = 20;
const soFar = (count: number): string => `${formatNumber(count)} so far`;

const HistogramRow = ({ histogram }: { readonly histogram: Histogram }) => {
  const isTime = histogram.name.endsWith('_seconds');
  const format = (value: number): string => (isTime ? formatDuration(value * 1_000) : formatNumber(value));
  return (
    <tr>
      <td>
        <span className={css.name}>{readable(histogram.name)}</span>
        <div className={ui.muted}>{STAGES[histogram.labels] ?? histogram.labels}</div>
      </td>
      <td data-end="">{formatNumber(histogram.count)}</td>
      <td data-end="">{format(histogram.mean)}</td>
      {[histogram.p50, histogram.p95, histogram.p99].map((value, index) => (
        <td key={index} data-end="">
          {histogram.count < MIN_OBSERVATIONS ? '–' : format(value)}
        </td>
      ))}
    </tr>
  );
};

const Stale = ({ at }: { readonly at: string }) => (
  <p role="status" className={css.pad}>
    The figures are stale. They were read <Time at={at} isExact />, and later reads failed.
  </p>
);

export const Performance = () => {
  const read = useFetched('metrics', readMetrics);
  usePolling(read);
  const { data, problem, refresh } = read;
  const samples = data && parseMetrics(data.text);
  return (
    <>
      <PageHead
        title="Metrics"
        question="Is the system fast and keeping up? Tables are of this gateway, since its start."
        actions={
          <>
            <PresentMark />
            <a className={ui.button} href="/metrics">
              Prometheus text
            </a>
          </>
        }
      />
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      {!data && !problem && <Loading what="metrics" />}
      {data !== undefined && problem && <Stale at={data.at} />}
      <div className={css.stack}>
        {samples && <Answer samples={samples} />}
        <Charts />
        {samples && <Tables samples={samples} />}
      </div>
    </>
  );
};

const worst = (values: readonly number[] | undefined): string | undefined =>
  values && formatNumber(Math.max(0, ...values));

/** Shows the four most important figures of the page. */
const Answer = ({ samples }: { readonly samples: readonly Sample[] }) => {
  const times = histogramsOf(samples);
  const p95 = (name: string, labels = ''): { readonly value: string; readonly note: string } => {
    const found = times.find((each) => each.name === name && each.labels === labels);
    const note = `a percentile needs ${MIN_OBSERVATIONS}`;
    if (!found) return { value: 'none yet', note };
    if (found.count < MIN_OBSERVATIONS) return { value: soFar(found.count), note };
    return { value: formatDuration(found.p95 * 1_000), note: '95 % are faster' };
  };
  const waiting = samples.find(({ name }) => name === 'antiphon_appends_waiting')?.value ?? 0;
  const models = useRead('listProjections', {}, { hasPast: false, changesOn: () => true });
  const behind = worst(models.data?.projections.flatMap(({ lag }) => (lag === null ? [] : [lag])));
  return (
    <div className={css.tiles}>
      <Tile to="/performance" label="First text of an answer" {...p95('antiphon_turn_first_text_seconds')} />
      <Tile
        to="/performance"
        label="Message accepted"
        {...p95('antiphon_turn_stage_seconds', 'stage=turn_accepted')}
      />
      <Tile to="/audit" label="Read models behind" value={behind} note="events, the slowest of them" />
      <Tile to="/performance" label="Appends waiting" value={formatNumber(waiting)} note="for the log" />
    </div>
  );
};

const Tables = ({ samples }: { readonly samples: readonly Sample[] }) => (
  <>
    <Stages histograms={histogramsOf(samples)} />
    <Panel title="Times and sizes">
      <Histograms histograms={histogramsOf(samples)} />
    </Panel>
    <Panel title="Counters and gauges">
      <Table label="Counters and gauges" columns={['Name', 'Labels', numberColumn('Value')]}>
        {valuesOf(samples).map((sample) => (
          <tr key={`${sample.name} ${labelsOf(sample)}`}>
            <td className={css.name}>{readable(sample.name)}</td>
            <td className={ui.mono}>{labelsOf(sample)}</td>
            <td data-end="">{formatNumber(sample.value)}</td>
          </tr>
        ))}
      </Table>
    </Panel>
  </>
);

/** Draws the stages of a turn; the table below has the same values. */
const Stages = ({ histograms }: { readonly histograms: readonly Histogram[] }) => {
  const bars = histograms
    .filter(({ name, labels }) => name === 'antiphon_turn_stage_seconds' && labels in STAGES)
    .map(({ labels, count, mean, p50, p95 }) => ({
      name: STAGES[labels] ?? labels,
      low: p50,
      high: p95,
      text:
        count < MIN_OBSERVATIONS
          ? `mean ${formatDuration(mean * 1_000)} · ${soFar(count)}`
          : `p50 ${formatDuration(p50 * 1_000)} · p95 ${formatDuration(p95 * 1_000)}`,
    }));
  if (bars.length === 0) return null;
  return (
    <Panel title="Stages of a turn" isPadded>
      <BarChart label="Stages of a turn, p50 and p95" bars={bars} />
    </Panel>
  );
};

const Histograms = ({ histograms }: { readonly histograms: readonly Histogram[] }) => {
  if (histograms.length === 0)
    return (
      <Empty title="Nothing is measured yet">
        <p>Send a message to an agent, and its times appear here.</p>
      </Empty>
    );
  return (
    <Table
      label="Times and sizes"
      columns={[
        'Measured',
        numberColumn('Count'),
        numberColumn('Mean'),
        numberColumn('p50'),
        numberColumn('p95'),
        numberColumn('p99'),
      ]}
    >
      {histograms.map((histogram) => (
        <HistogramRow key={`${histogram.name} ${histogram.labels}`} histogram={histogram} />
      ))}
    </Table>
  );
};
