import { useEffect, useRef, useState, type KeyboardEvent } from 'react';
import { client } from '../data/gateway.js';
import { fetchEventAt, type Moment } from '../data/moments.js';
import { head } from '../data/live-log.js';
import { useStore } from '../data/store.js';
import { countOf, formatDate, formatNumber, wordsOfType } from '../ui/format.js';
import { Icon } from '../ui/icon.js';
import { Button, classes } from '../ui/ui.js';
import { setParams, showPosition, usePosition } from '../data/router.js';
import css from './shell.module.css';

/** Moves every view to a position of the log; the head is the present. */
export const goToPosition = (position: number): void => {
  const last = head.get() ?? 0;
  setParams({ at: position >= last ? null : Math.max(1, position) });
};

/** Moves to the start of the turn before or after a position: in a session only to its own turns. */
const goToTurn = async (from: number, step: 1 | -1): Promise<void> => {
  const [, session] = /^\/sessions\/([^/]+)/.exec(location.pathname) ?? [];
  const order =
    step > 0 ? ({ after: from, order: 'asc' } as const) : ({ at: from - 1, order: 'desc' } as const);
  const own = session === undefined ? {} : { stream: `session-${session}` };
  const query = { type: 'TurnRequested', limit: 1, ...order, ...own };
  const [turn] = from <= 1 && step < 0 ? [] : (await client.http.readEvents({ query })).events;
  if (turn) goToPosition(turn.position);
  else if (step > 0) goToPosition(head.get() ?? from);
};

const useMoment = (position: number | null): Moment | null => {
  const [moment, setMoment] = useState<Moment | null>(null);
  useEffect(() => {
    if (position === null) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      fetchEventAt(position, abort.signal).then(setMoment, () => setMoment(null));
    }, 120);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [position]);
  return moment !== null && moment.position === position ? moment : null;
};

const textOf = (position: number, last: number, moment: Moment | null): string =>
  `event ${formatNumber(position)} of ${formatNumber(last)}` +
  (moment ? `, ${wordsOfType(moment.type)}, ${formatDate(moment.recordedAt)}` : '');

/**
 * Shows the position of the log at which every view is true, and moves it. New events only raise a
 * counter while a page shows the past.
 */
export const PositionBar = () => {
  const at = usePosition();
  const last = useStore(head);
  const moment = useMoment(at);
  const [dragged, setDragged] = useState<number | null>(null);
  const frame = useRef<number>(undefined);
  const wanted = useRef(0);
  const shown = dragged ?? at ?? last ?? 1;
  const move = (position: number, isLast: boolean): void => {
    setDragged(position);
    // The end of the bar is the present, also when an event came since the bar was drawn.
    wanted.current = isLast ? Infinity : position;
    // A drag shows one position in a frame.
    frame.current ??= requestAnimationFrame(() => {
      frame.current = undefined;
      setDragged(null);
      const isHead = wanted.current >= (head.get() ?? 0);
      showPosition(isHead ? null : Math.max(1, wanted.current));
    });
  };
  const isPast = at !== null;
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!event.shiftKey || (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight')) return;
    event.preventDefault();
    void goToTurn(shown, event.key === 'ArrowRight' ? 1 : -1).catch(() => undefined);
  };
  return (
    <div
      className={css.position}
      data-past={isPast ? '' : undefined}
      role="group"
      aria-label="Position of the log"
    >
      <PositionText at={at} last={last} moment={moment} />
      <input
        type="range"
        aria-label="Position of the log"
        aria-valuetext={textOf(shown, last ?? 1, moment)}
        min={1}
        max={Math.max(1, last ?? 1, at ?? 1)}
        value={shown}
        disabled={last === null || last < 2}
        onChange={({ target }) => move(Number(target.value), target.value === target.max)}
        onKeyDown={onKeyDown}
      />
      {isPast ? (
        <Button onClick={() => setParams({ at: null })}>Back to live</Button>
      ) : (
        <span className={classes(css.positionText, css.wide)}>drag to see any page as it was</span>
      )}
    </div>
  );
};

const PositionText = ({
  at,
  last,
  moment,
}: {
  at: number | null;
  last: number | null;
  moment: Moment | null;
}) => {
  if (at === null)
    return (
      <span className={css.positionText}>
        <strong>Live</strong> {last === null ? '…' : `event ${formatNumber(last)}`}
      </span>
    );
  const newer = Math.max(0, (last ?? at) - at);
  return (
    <span className={css.positionText} role="status">
      <Icon name="clock" />
      <strong>As of {formatNumber(at)}</strong>
      {moment && (
        <span className={css.wide}>
          {formatDate(moment.recordedAt)} · {wordsOfType(moment.type)}
        </span>
      )}
      <span>{countOf(newer, 'newer event')}</span>
    </span>
  );
};
