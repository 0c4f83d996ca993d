import { usePosition, useParam } from '../../data/router.js';
import { isAbout } from '../../data/event-pages.js';
import { readings } from '../../data/metrics-history.js';
import { RATE_SPANS, rateSpanOf, type Rates } from '../../data/rate-series.js';
import { useStore } from '../../data/store.js';
import { usePolling } from '../../data/use-polling.js';
import { useRead } from '../../data/use-read.js';
import { formatCompact, formatNumber } from '../../ui/format.js';
import { PresentMark } from '../../ui/present-mark.js';
import { TimeChart } from '../../ui/time-chart.js';
import { Empty, Loading, Panel, ProblemBox } from '../../ui/ui.js';
import { SpanButtons } from '../span-buttons.js';
import pages from '../pages.module.css';
import {
  callsView,
  costView,
  countsView,
  daysView,
  lagView,
  openView,
  tokensView,
  type ChartView,
} from './chart-rows.js';

const dollars = new Intl.NumberFormat('en-US', {
  style: 'currency',
  currency: 'USD',
  maximumFractionDigits: 6,
});
const formatDollars = (usd: number): string => dollars.format(usd);

interface RateChart {
  readonly label: string;
  readonly shape: 'line' | 'columns';
  readonly series: readonly string[];
  readonly view: (rates: Rates) => ChartView;
  readonly format?: (value: number) => string;
}

const CHARTS: readonly RateChart[] = [
  {
    ...{ label: 'Turns', shape: 'columns', series: ['Turns'] },
    view: (rates) => countsView(rates, 'turns', ({ turns }) => turns),
  },
  {
    ...{ label: 'Failures', shape: 'columns', series: ['Failures'] },
    view: (rates) => countsView(rates, 'failures', ({ failures }) => failures),
  },
  { label: 'Open turns and tasks', shape: 'line', series: ['Open turns', 'Open tasks'], view: openView },
  {
    ...{ label: 'Cost', shape: 'columns', series: ['US dollars'], format: formatDollars },
    view: costView,
  },
  {
    ...{ label: 'Tokens', shape: 'line', series: ['Tokens in', 'Tokens out'], format: formatCompact },
    view: tokensView,
  },
  { label: 'Calls', shape: 'line', series: ['Model calls', 'Tool calls'], view: callsView },
  {
    ...{ label: 'Events', shape: 'columns', series: ['Events'] },
    view: (rates) => countsView(rates, 'events', ({ events }) => events),
  },
];

const NOTHING = (): void => undefined;

/** Rates of the workspace over an hour, a day or a month: counted by the server as the log grows. */
const RateCharts = () => {
  const span = rateSpanOf(useParam('span'));
  const isPast = usePosition() !== null;
  const read = useRead('readRates', { query: { span: span.name } });
  usePolling(isPast ? { ...read, refresh: NOTHING } : read);
  const { data, problem, refresh } = read;
  return (
    <>
      <SpanButtons spans={RATE_SPANS} current={span.name} />
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      {!data && !problem && <Loading what="the rates" />}
      {data &&
        CHARTS.map(({ label, shape, series, view, format }) => (
          <Panel key={label} title={label} isPadded className={pages.half}>
            <TimeChart
              {...{ ...view(data), label, shape, series, time: 'Time' }}
              file={`${label.toLowerCase().replaceAll(' ', '-')}-${span.name}.csv`}
              {...(format && { format })}
            />
          </Panel>
        ))}
    </>
  );
};

const LagChart = ({ view }: { readonly view: ChartView | null }) =>
  view === null ? (
    <Loading what="the lag of the read models" />
  ) : (
    <TimeChart
      {...view}
      label="Lag"
      shape="line"
      series={['Events behind', 'Appends waiting']}
      time="Time"
      file="lag.csv"
    />
  );

/** Shows the cost of each day, as of the position of the page. */
const DaysChart = () => {
  const position = usePosition();
  const { data, problem, refresh } = useRead(
    'readUsage',
    { query: { by: 'day' } },
    { changesOn: isAbout('budget') },
  );
  const view = data && daysView(data.groups ?? []);
  return (
    <Panel
      title={position === null ? 'Cost a day' : `Cost a day, as of event ${formatNumber(position)}`}
      isPadded
      className={pages.half}
    >
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      {!data && !problem && <Loading what="the cost of each day" />}
      {view === null && (
        <Empty title="No model call has been made yet">
          <p>Send a message to an agent, and its cost appears here.</p>
        </Empty>
      )}
      {view && (
        <TimeChart
          {...view}
          label="Cost a day"
          shape="columns"
          series={['US dollars']}
          time="Day (UTC)"
          file="cost-a-day.csv"
          format={formatDollars}
        />
      )}
    </Panel>
  );
};

/** Shows the rates of a time, the cost of the last days, and the lag while the page is open. */
export const Charts = () => {
  const known = useStore(readings);
  return (
    <div className={pages.grid}>
      <RateCharts />
      <DaysChart />
      <Panel title="Lag" isPadded actions={<PresentMark />}>
        <LagChart view={lagView(known)} />
      </Panel>
    </div>
  );
};
