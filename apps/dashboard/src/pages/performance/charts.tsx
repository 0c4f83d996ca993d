import type { ReactNode } from 'react';
import { usePosition } from '../../data/router.js';
import { isAbout } from '../../data/event-pages.js';
import { metricsHistory, type MetricsHistory } from '../../data/metrics-history.js';
import { useStore } from '../../data/store.js';
import { useRead } from '../../data/use-read.js';
import { formatNumber } from '../../ui/format.js';
import { PresentMark } from '../../ui/present-mark.js';
import { TimeChart } from '../../ui/time-chart.js';
import { Empty, Loading, Panel, ProblemBox } from '../../ui/ui.js';
import pages from '../pages.module.css';
import { costView, daysView, eventsView, lagView, turnsView, type ChartView } from './chart-rows.js';

const dollars = new Intl.NumberFormat('en-US', {
  style: 'currency',
  currency: 'USD',
  maximumFractionDigits: 6,
});
const formatDollars = (usd: number): string => dollars.format(usd);

interface LiveChartProps {
  readonly title: string;
  readonly isWide?: boolean;
  readonly children: ReactNode;
}

/** A chart of the present. In the past it says so. */
const LiveChart = ({ title, isWide = false, children }: LiveChartProps) => (
  <Panel title={title} isPadded className={isWide ? undefined : pages.half} actions={<PresentMark />}>
    {children}
  </Panel>
);

type History = Pick<MetricsHistory, 'amounts' | 'problem'>;

const FromLog = ({
  history,
  draw,
}: {
  history: History;
  draw: (amounts: NonNullable<History['amounts']>) => ReactNode;
}) => {
  const { amounts, problem } = history;
  return (
    <>
      {problem && <ProblemBox problem={problem} />}
      {amounts ? draw(amounts) : !problem && <Loading what="the last 30 minutes" />}
    </>
  );
};

const Waits = () => (
  <Empty title="The first value comes within 10 s">
    <p>A rate needs two reads. They continue while this page is open.</p>
  </Empty>
);

const EventsChart = ({ view }: { readonly view: ChartView | null }) =>
  view === null ? (
    <Waits />
  ) : (
    <TimeChart
      {...view}
      label="Events a minute"
      shape="line"
      series={['Events a minute']}
      time="Time"
      file="events-a-minute.csv"
    />
  );

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

const TurnsChart = (view: ChartView) => (
  <TimeChart
    {...view}
    label="Turns a minute"
    shape="columns"
    series={['Turns']}
    time="Time"
    file="turns-a-minute.csv"
  />
);

const CostChart = (view: ChartView) => (
  <TimeChart
    {...view}
    label="Cost a minute"
    shape="columns"
    series={['US dollars']}
    time="Time"
    file="cost-a-minute.csv"
    format={formatDollars}
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

/** Shows the rate, the cost and the lag of the last 30 minutes, and the cost of the last days. */
export const Charts = () => {
  const { readings, amounts, problem } = useStore(metricsHistory);
  const history = { amounts, problem };
  return (
    <div className={pages.grid}>
      <LiveChart title="Turns a minute">
        <FromLog history={history} draw={(known) => <TurnsChart {...turnsView(known)} />} />
      </LiveChart>
      <LiveChart title="Events a minute">
        <EventsChart view={eventsView(readings)} />
      </LiveChart>
      <LiveChart title="Cost a minute">
        <FromLog history={history} draw={(known) => <CostChart {...costView(known)} />} />
      </LiveChart>
      <DaysChart />
      <LiveChart title="Lag" isWide>
        <LagChart view={lagView(readings)} />
      </LiveChart>
    </div>
  );
};
