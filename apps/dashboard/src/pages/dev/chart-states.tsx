import { Sparkline } from '../../ui/sparkline.js';
import { TimeChart } from '../../ui/time-chart.js';
import { Panel } from '../../ui/ui.js';
import pages from '../pages.module.css';
import { LONG } from './samples.js';

const START = Date.parse('2026-11-23T05:00:00.000Z');
const rowsOf = (stepMs: number, ...rows: readonly (readonly (number | null)[])[]) =>
  rows.map((values, index) => ({ at: START + index * stepMs, values }));

const COLUMNS = rowsOf(86_400_000, [0.02], [0], [null], [1.5], [0.75]);
const LINES = rowsOf(10_000, [3, 0], [90, 1], [null, null], [4, 2], [null, 3], [12, 3], [8, 1]);
const DAYS = { shape: 'columns', time: 'Day (UTC)', file: 'sample.csv' } as const;

/** Shows charts over time: sums, two lines with gaps, one value, none, and long texts. */
export const ChartStates = () => (
  <div className={pages.grid}>
    <Panel title="Sums of a time" isPadded className={pages.half}>
      <TimeChart {...DAYS} label="Sums" summary="$0.75 on a day." series={['US dollars']} rows={COLUMNS} />
    </Panel>
    <Panel title="Lines with gaps" isPadded className={pages.half}>
      <TimeChart
        {...{ label: 'Lines', shape: 'line', series: ['Events behind', 'Appends waiting'], time: 'Time' }}
        summary="8 events behind, at most 90."
        rows={LINES}
        file="sample.csv"
      />
    </Panel>
    <Panel title="One value" isPadded className={pages.half}>
      <TimeChart
        {...{ label: 'One value', shape: 'line', series: [LONG.slice(0, 60), 'Other'], time: 'Time' }}
        summary={LONG}
        rows={rowsOf(1, [1_250_000, 0])}
        file="sample.csv"
      />
    </Panel>
    <Panel title="Lines of cards" isPadded className={pages.half}>
      <Sparkline label="CPU" text="12 %" tip="CPU: 0 % to 12 %" rows={LINES} top={100} />
      <Sparkline label="Disk" text="2.0 KiB" tip="one sample" rows={rowsOf(1, [2])} top={2} />
    </Panel>
    <Panel title="No value" isPadded className={pages.half}>
      <TimeChart {...DAYS} label="No value" summary="Nothing is known." series={['Turns']} rows={[]} />
    </Panel>
  </div>
);
