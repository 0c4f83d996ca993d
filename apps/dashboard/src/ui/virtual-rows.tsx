import { useLayoutEffect, useRef, useState, type KeyboardEvent, type ReactNode, type RefObject } from 'react';
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
  /** Called with the first row in view, when it changes. */
  readonly onView?: (first: number) => void;
  /** Called when the last rows come into view. */
  readonly onEnd?: () => void;
}

const OVERSCAN = 12;

/** Moves the focus by an arrow key: from the table to its first row in view, else to the next row. */
const moveFocus = (event: KeyboardEvent<HTMLDivElement>, rowHeight: number): void => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  const table = event.currentTarget;
  const current = (event.target as HTMLElement).closest('[role=row]')?.getAttribute('aria-rowindex');
  // The row of the heads has the index 1.
  const wanted = current ? Number(current) + step : Math.ceil(table.scrollTop / rowHeight) + 2;
  const next = table.querySelector<HTMLElement>(`[aria-rowindex="${wanted}"] button`);
  if (!next) return;
  event.preventDefault();
  next.focus();
};

/** Follows the part of a box that is in view. */
export const useView = (box: RefObject<HTMLDivElement | null>) => {
  const [view, setView] = useState({ top: 0, height: 600 });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = (): void => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, [box]);
  return [view, setView] as const;
};

/**
 * A table of equal rows that has only the visible ones in the page. It is one stop of Tab, because
 * its rows may have no end: arrow keys go from the button of a row to the next.
 */
export const VirtualRows = ({
  label,
  count,
  rowHeight,
  columns,
  row,
  keyOf,
  onView,
  onEnd,
}: VirtualRowsProps) => {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useView(box);
  const first = Math.max(0, Math.floor(view.top / rowHeight) - OVERSCAN);
  const last = Math.min(count, Math.ceil((view.top + view.height) / rowHeight) + OVERSCAN);
  const onScroll = (): void => {
    const element = box.current;
    if (!element) return;
    setView({ top: element.scrollTop, height: element.clientHeight });
    onView?.(Math.floor(element.scrollTop / rowHeight));
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
      onKeyDown={(event) => moveFocus(event, rowHeight)}
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
