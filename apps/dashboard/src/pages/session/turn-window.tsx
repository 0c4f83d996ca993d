import { useEffect, useLayoutEffect, useRef, useState, type FormEvent } from 'react';
import { setParams, useParam, usePosition } from '../../data/router.js';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import type { Turn } from '../../data/transcript.js';
import { formatNumber } from '../../ui/format.js';
import { Button, css as ui, ProblemBox } from '../../ui/ui.js';
import type { SessionLog } from './session-log.js';
import css from './session.module.css';

/** Turns that are shown first, and that one request adds. */
const PAGE = 40;
/** Most turns in the page at one time. */
const MAX = 80;
const NEAR_END_PX = 160;

interface ShownTurns {
  readonly shown: readonly Turn[];
  /** Shows earlier turns; null if there are none. */
  readonly earlier: (() => void) | null;
  readonly later: (() => void) | null;
}

/** Position of the turn that the address names; null shows the end. */
export const useFrom = (): number | null => {
  const from = useParam('from');
  return /^\d{1,15}$/.test(from) ? Number(from) : null;
};

/** Turn of the log with which a page begins, and the number of turns that are shown before it. */
export interface Begin {
  readonly position: number;
  readonly before: number;
}

/** Returns the last turn of the first view; null for the end of the conversation. */
const lastOf = (turns: readonly Turn[], begin: Begin | null): string | null => {
  if (begin === null) return null;
  const index = turns.findIndex(({ firstPosition }) => firstPosition >= begin.position);
  const last = index < 0 ? turns.length - 1 : index - begin.before + PAGE - 1;
  return turns[Math.max(0, Math.min(last, turns.length - 1))]?.turnId ?? null;
};

/** Chooses which turns are in the page: the last ones, or those around an earlier one. */
export const useShownTurns = (
  turns: readonly Turn[],
  log: Pick<SessionLog, 'hasEarlier' | 'hasLater' | 'loadEarlier' | 'loadLater'>,
  begin: Begin | null,
): ShownTurns => {
  // Null keeps to the newest turn.
  const [last, setLast] = useState<string | null>(() => lastOf(turns, begin));
  const [size, setSize] = useState(PAGE);
  const found = last === null ? -1 : turns.findIndex(({ turnId }) => turnId === last);
  const end = found < 0 ? turns.length : found + 1;
  const start = Math.max(0, end - size);
  const earlier = (): void => {
    if (size < MAX) setSize(MAX);
    else setLast(turns[Math.max(0, end - 1 - PAGE)]?.turnId ?? null);
    if (start < MAX && log.hasEarlier) log.loadEarlier();
  };
  const later = (): void => {
    const next = turns[end - 1 + PAGE];
    setLast(next?.turnId ?? (log.hasLater ? (turns.at(-1)?.turnId ?? null) : null));
    if (turns.length - end < MAX && log.hasLater) log.loadLater();
  };
  return {
    shown: turns.slice(start, end),
    earlier: start > 0 || log.hasEarlier ? earlier : null,
    later: end < turns.length || log.hasLater ? later : null,
  };
};

const isNearEnd = (): boolean => {
  const { scrollHeight, clientHeight, scrollTop } = document.documentElement;
  return scrollHeight - clientHeight - scrollTop < NEAR_END_PX;
};

/** Keeps the end of the conversation in view, unless the reader has scrolled up. */
export const useFollowEnd = (changes: unknown, isOn: boolean): void => {
  const follows = useRef(isOn);
  useEffect(() => {
    const onScroll = (): void => void (follows.current = isOn && isNearEnd());
    addEventListener('scroll', onScroll, { passive: true });
    return () => removeEventListener('scroll', onScroll);
  }, [isOn]);
  useLayoutEffect(() => {
    if (follows.current) scrollTo({ top: document.documentElement.scrollHeight });
  }, [changes]);
};

/** Goes to a turn of a long session by its number. */
export const GoToTurn = ({ sessionId, count }: { readonly sessionId: string; readonly count: number }) => {
  const [text, setText] = useState('');
  const { run, isBusy, problem } = useAct();
  const at = usePosition();
  const number = Number(text);
  const isValid = Number.isInteger(number) && number >= 1 && number <= count;
  const go = async (): Promise<void> => {
    const query = { order: 'asc', offset: number - 1, limit: 1, ...(at === null ? {} : { at }) } as const;
    const { turns } = await client.http.readTurns({ params: { id: sessionId }, query });
    const [turn] = turns;
    if (turn) setParams({ from: turn.firstPosition }, {});
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (isValid) run(go);
  };
  return (
    <form className={css.goTo} onSubmit={submit}>
      <label>
        Turn{' '}
        <input
          className={ui.input}
          inputMode="numeric"
          aria-label={`Number of a turn, 1 to ${count}`}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />{' '}
        of {formatNumber(count)}
      </label>
      <Button type="submit" disabled={!isValid || isBusy}>
        Go to turn
      </Button>
      {problem && <ProblemBox problem={problem} />}
    </form>
  );
};
