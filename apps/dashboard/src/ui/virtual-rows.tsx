import { useLayoutEffect, useRef, useState, type ReactNode } from 'react';
import css from './virtual-rows.module.css';

interface VirtualRowsProps {
  readonly label: string;
  readonly count: number;
  /** Height of each row, px. */
  readonly rowHeight: number;
  readonly columns: readonly string[];
  readonly row: (index: number) => ReactNode;
  /** Returns the name of a row, so that a row that moves keeps its element. */
  readonly keyOf?: (index: number) => number | string;
  /** Called when the last rows come into view. */
  readonly onEnd?: () => void;
}

const OVERSCAN = 12;

/** A table of equal rows that has only the visible ones in the page. */
export const VirtualRows = ({ label, count, rowHeight, columns, row, keyOf, onEnd }: VirtualRowsProps) => {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = (): void => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(view.top / rowHeight) - OVERSCAN);
  const last = Math.min(count, Math.ceil((view.top + view.height) / rowHeight) + OVERSCAN);
  const onScroll = (): void => {
    const element = box.current;
    if (!element) return;
    setView({ top: element.scrollTop, height: element.clientHeight });
    if (element.scrollTop + element.clientHeight > element.scrollHeight - rowHeight * OVERSCAN) onEnd?.();
  };
  return (
    <div
      ref={box}
      className={css.box}
      role="table"
      aria-label={label}
      aria-rowcount={count + 1}
      tabIndex={0}
      onScroll={onScroll}
    >
      <div role="row" aria-rowindex={1} className={css.head}>
        {columns.map((name) => (
          <span key={name} role="columnheader">
            {name}
          </span>
        ))}
      </div>
      <div role="rowgroup" className={css.rows} style={{ height: count * rowHeight }}>
        {Array.from({ length: Math.max(0, last - first) }, (_, index) => (
          <div
            key={keyOf?.(first + index) ?? first + index}
            role="row"
            aria-rowindex={first + index + 2}
            className={css.row}
            style={{ height: rowHeight, transform: `translateY(${(first + index) * rowHeight}px)` }}
          >
            {row(first + index)}
          </div>
        ))}
      </div>
    </div>
  );
};
