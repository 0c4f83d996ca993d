import { css as ui } from '../../ui/ui.js';
import css from '../pages.module.css';

interface MeterProps {
  readonly label: string;
  readonly settled: number;
  readonly reserved: number;
  readonly limit: number | null;
  readonly format: (value: number) => string;
}

/** Returns the share of a part, 0 to 100. Of nothing it is 100. */
export const percent = (part: number, whole: number): number =>
  whole === 0 ? 100 : Math.min(100, (part / whole) * 100);

/** Spent and reserved parts of a limit, in words and as a bar. */
export const Meter = ({ label, settled, reserved, limit, format }: MeterProps) => {
  const spent = limit === null ? 0 : percent(settled, limit);
  const bound = limit === null ? 0 : percent(reserved, limit);
  return (
    <div className={css.meterRow}>
      <div className={css.meterText}>
        <strong>{format(settled)}</strong>
        <span className={ui.muted}>
          {limit === null ? 'no limit' : `of ${format(limit)}`}
          {reserved > 0 && `, ${format(reserved)} reserved`}
        </span>
      </div>
      {limit !== null && (
        <div
          className={css.meter}
          role="meter"
          aria-label={label}
          aria-valuemin={0}
          aria-valuemax={limit}
          aria-valuenow={Math.min(settled, limit)}
          aria-valuetext={`${format(settled)} of ${format(limit)}`}
          data-full={settled + reserved >= limit ? '' : undefined}
        >
          <i style={{ width: `${spent}%` }} />
          <i data-part="reserved" style={{ left: `${spent}%`, width: `${Math.min(bound, 100 - spent)}%` }} />
        </div>
      )}
    </div>
  );
};
