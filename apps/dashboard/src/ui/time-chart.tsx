import { useState, type SyntheticEvent } from 'react';
import { HEIGHT, pathsOf, mostOf, roundUp, slotsOf, WIDTH, type ChartRow } from './chart-scale.js';
import { download, printCsv } from './download.js';
import { formatClock, formatDayClock, formatNumber } from './format.js';
import css from './time-chart.module.css';
import { Button, Table, Time, numberColumn } from './ui.js';

interface TimeChartProps {
  /** Name of the chart. */
  readonly label: string;
  /** Sentence with the most important figures. */
  readonly summary: string;
  /** Columns are sums of a time, and a line is a level or a rate. */
  readonly shape: 'line' | 'columns';
  /** Name of each series, as the table and the saved file have it. */
  readonly series: readonly string[];
  /** Rows, the oldest first. */
  readonly rows: readonly ChartRow[];
  readonly time: 'Time' | 'Day (UTC)';
  /** Name of the saved file. */
  readonly file: string;
  /** Prints a value of the scale. Default: a number. */
  readonly format?: (value: number) => string;
}

/** Digits after the point in tables and files: those of a micro-dollar. */
const digits = new Intl.NumberFormat('en-US', { maximumFractionDigits: 6 });
const UNKNOWN = 'not known';

const isoOf = (at: number, time: TimeChartProps['time']): string => {
  const iso = new Date(at).toISOString();
  return time === 'Time' ? iso : iso.slice(0, 10);
};
/** Length of a chart from which a time needs its day, ms. */
const DAY_MS = 20 * 3_600_000;
/** Returns a time as the drawing has it. */
const shortTime = (at: number, { time, rows }: Pick<TimeChartProps, 'time' | 'rows'>): string => {
  if (time !== 'Time') return isoOf(at, time);
  const isLong = (rows.at(-1)?.at ?? at) - (rows[0]?.at ?? at) >= DAY_MS;
  return isLong ? formatDayClock(at) : formatClock(at);
};

/** Returns the names of the columns and the cells of the chart, as its table and its file have them. */
export const cellsOf = ({ time, series, rows }: Pick<TimeChartProps, 'time' | 'series' | 'rows'>) => ({
  columns: [time, ...series],
  cells: rows.map(({ at, values }) => [isoOf(at, time), ...values]),
});

const save = (chart: TimeChartProps): void => {
  const { columns, cells } = cellsOf(chart);
  download(printCsv(columns, cells), chart.file, 'text/csv');
};

/** Share of its place that a column fills, and the most of the whole width. */
const FILL = 0.76;
const MAX_COLUMN = 8;

const Columns = ({ rows, top }: { readonly rows: readonly ChartRow[]; readonly top: number }) =>
  slotsOf(rows, 'columns').map(({ x, width }, index) => {
    const height = ((rows[index]?.values[0] ?? 0) / top) * HEIGHT;
    const wide = Math.min(width * FILL, MAX_COLUMN);
    const drawn = { x: x + (width - wide) / 2, width: wide, y: HEIGHT - height, height };
    return height > 0 && <rect key={x} className={css.column} {...drawn} />;
  });

const Lines = ({ rows, series, top }: Pick<TimeChartProps, 'rows' | 'series'> & { readonly top: number }) =>
  series.map((name, index) => {
    const { line, dots } = pathsOf(rows, index, top);
    return (
      <g key={name} data-series={index}>
        <path className={css.line} d={line} />
        <path className={css.dots} d={dots} />
      </g>
    );
  });

/** Draws the values. The pointer shows those of the nearest row, which the table has too. */
const Drawing = ({ top, ...chart }: TimeChartProps & { readonly top: number }) => {
  const { rows, shape, series, format = formatNumber } = chart;
  const tipOf = ({ at, values }: ChartRow): string => {
    const texts = values.map((value) => (value === null ? UNKNOWN : format(value)));
    return `${shortTime(at, chart)} · ${texts.map((text, index) => `${series[index]}: ${text}`).join(' · ')}`;
  };
  return (
    <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <path className={css.grid} d={`M0 0H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT}H${WIDTH}`} />
      {shape === 'columns' ? <Columns {...{ rows, top }} /> : <Lines {...{ rows, series, top }} />}
      {slotsOf(rows, shape).map((slot, index) => {
        const row = rows[index];
        return (
          row && <rect key={row.at} className={css.slot} {...slot} height={HEIGHT} data-tip={tipOf(row)} />
        );
      })}
    </svg>
  );
};

const Legend = ({ series }: Pick<TimeChartProps, 'series'>) => (
  <ul className={css.legend}>
    {series.map((name, index) => (
      <li key={name}>
        <svg viewBox="0 0 24 8" aria-hidden="true" data-series={index}>
          <path className={css.line} d="M0 4H24" />
        </svg>
        {name}
      </li>
    ))}
  </ul>
);

/** The values in a table, newest first. They are drawn once the reader opens them. */
const Values = (chart: TimeChartProps) => {
  const [isOpen, setOpen] = useState(false);
  const { columns, cells } = cellsOf(chart);
  const [time = '', ...names] = columns;
  return (
    <details
      className={css.values}
      onToggle={(event: SyntheticEvent<HTMLDetailsElement>) => setOpen(event.currentTarget.open)}
    >
      <summary>
        Values<span className="visually-hidden"> of {chart.label}</span>
      </summary>
      {isOpen && (
        <Table label={`Values of ${chart.label}`} columns={[time, ...names.map(numberColumn)]}>
          {cells.toReversed().map(([at, ...values]) => (
            <tr key={String(at)}>
              <td>{chart.time === 'Time' ? <Time at={String(at)} isExact /> : at}</td>
              {values.map((value, index) => (
                <td key={names[index]} data-end="">
                  {typeof value === 'number' ? digits.format(value) : UNKNOWN}
                </td>
              ))}
            </tr>
          ))}
        </Table>
      )}
    </details>
  );
};

/**
 * Draws values over time. Its sentence and its table have the same values, so that nothing is told
 * by the drawing alone. A gap is a time of which nothing is known.
 */
export const TimeChart = (chart: TimeChartProps) => {
  const { label, summary, series, rows, format = formatNumber } = chart;
  const top = roundUp(mostOf(rows));
  const [first, last] = [rows[0], rows.at(-1)];
  return (
    <figure className={css.chart} aria-label={label}>
      <figcaption>{summary}</figcaption>
      {series.length > 1 && <Legend series={series} />}
      <div className={css.frame}>
        <div className={css.scale} aria-hidden="true">
          {[top, top / 2, 0].map((value) => (
            <span key={value}>{format(value)}</span>
          ))}
        </div>
        <Drawing {...chart} top={top} />
        <div className={css.times} aria-hidden="true">
          {first && last !== first && <span>{shortTime(first.at, chart)}</span>}
          {last && <span>{shortTime(last.at, chart)}</span>}
        </div>
      </div>
      <div className={css.foot}>
        <Values {...chart} />
        <Button onClick={() => save(chart)}>
          Save as CSV<span className="visually-hidden"> the values of {label}</span>
        </Button>
      </div>
    </figure>
  );
};
