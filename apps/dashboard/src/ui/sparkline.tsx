import { pathsOf, type ChartRow } from './chart-scale.js';
import css from './sparkline.module.css';

interface SparklineProps {
  /** Name of the value, such as `Memory`. */
  readonly label: string;
  /** Newest value as text: the line only adds its course. */
  readonly text: string;
  /** Course of the value as text, for the tip. */
  readonly tip: string;
  /** Rows, the oldest first. */
  readonly rows: readonly ChartRow[];
  /** Value at the top of the line. */
  readonly top: number;
}

/** A value with a small line of its last minutes. The line says nothing that the text does not. */
export const Sparkline = ({ label, text, tip, rows, top }: SparklineProps) => {
  const { line, dots } = pathsOf(rows, 0, top);
  return (
    <div className={css.spark} data-tip={tip}>
      <span className={css.label}>{label}</span>
      <svg viewBox="0 -2 100 44" preserveAspectRatio="none" aria-hidden="true">
        <path className={css.base} d="M0 40H100" />
        <path className={css.line} d={line} />
        <path className={css.dots} d={dots} />
      </svg>
      <span className={css.text}>{text}</span>
    </div>
  );
};
