import css from './bar-chart.module.css';

/** A row of a chart: a value, and a larger one that it is a part of. */
export interface Bar {
  readonly name: string;
  readonly low: number;
  readonly high: number;
  /** Both values in words. */
  readonly text: string;
}

interface BarChartProps {
  readonly label: string;
  readonly bars: readonly Bar[];
}

/**
 * Draws bars of two values each. Names and values are text, so that nothing is told by length or
 * colour alone. A page shows the same values in a table.
 */
export const BarChart = ({ label, bars }: BarChartProps) => {
  const most = Math.max(0, ...bars.map(({ high }) => high)) || 1;
  return (
    <ul className={css.chart} aria-label={label}>
      {bars.map(({ name, low, high, text }) => (
        <li key={name}>
          <span>{name}</span>
          <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
            <rect className={css.high} width={(100 * high) / most} height="8" />
            <rect className={css.low} width={(100 * Math.min(low, high)) / most} height="8" />
          </svg>
          <span className={css.text}>{text}</span>
        </li>
      ))}
    </ul>
  );
};
