import { useEffect } from 'react';
import { PageHead } from '../app/page-head.js';
import {
  histogramsOf,
  labelsOf,
  parseMetrics,
  valuesOf,
  type Histogram,
  type Sample,
} from '../data/metrics-text.js';
import { client } from '../data/gateway.js';
import { useFetched } from '../data/use-read.js';
import { formatDuration, formatNumber } from '../ui/format.js';
import { css as ui, Empty, Loading, Panel, ProblemBox, Table, numberColumn } from '../ui/ui.js';
import css from './pages.module.css';

const EVERY_MS = 10_000;

const readable = (name: string): string =>
  name
    .replace(/^antiphon_/, '')
    .replace(/_(seconds|total)$/, '')
    .replaceAll('_', ' ');

const HistogramRow = ({ histogram }: { readonly histogram: Histogram }) => {
  const isTime = histogram.name.endsWith('_seconds');
  const format = (value: number): string => (isTime ? formatDuration(value * 1_000) : formatNumber(value));
  return (
    <tr>
      <td>
        <span className={css.name}>{readable(histogram.name)}</span>
        <div className={ui.mono}>{histogram.labels}</div>
      </td>
      <td data-end="">{formatNumber(histogram.count)}</td>
      <td data-end="">{format(histogram.mean)}</td>
      <td data-end="">{format(histogram.p50)}</td>
      <td data-end="">{format(histogram.p95)}</td>
      <td data-end="">{format(histogram.p99)}</td>
    </tr>
  );
};

export const Performance = () => {
  const { data, problem, refresh } = useFetched('metrics', (signal) => client.http.metrics({ signal }));
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && refresh(), EVERY_MS);
    return () => clearInterval(timer);
  }, [refresh]);
  return (
    <>
      <PageHead
        title="Metrics"
        question="Is the system fast and keeping up? The figures are of this gateway, since its start."
        actions={
          <a className={ui.button} href="/metrics">
            Prometheus text
          </a>
        }
      />
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      {!data && !problem && <Loading what="metrics" />}
      {data !== undefined && <Tables samples={parseMetrics(data)} />}
    </>
  );
};

const Tables = ({ samples }: { readonly samples: readonly Sample[] }) => (
  <div className={css.stack}>
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
  </div>
);

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
