import type { LogEvent } from '@antiphon/client';
import { useCallback, useEffect, useRef, useState } from 'react';
import { client } from '../../data/gateway.js';
import { onEvents } from '../../data/live-log.js';
import { toProblem, type Problem } from '../../data/use-read.js';
import { matches, type EventsQuery, type Filters } from './event-query.js';

const PAGE = 200;
/** Events in memory; older ones are read again when they are scrolled to. */
const MAX_EVENTS = 20_000;
const SOON_MS = 300;

export interface EventList {
  /** Newest first. */
  readonly events: readonly LogEvent[];
  readonly hasOlder: boolean;
  readonly isLoading: boolean;
  readonly problem: Problem | null;
  /** New events that a paused tail holds back. */
  readonly waiting: number;
  readonly loadOlder: () => void;
}

interface State {
  readonly events: readonly LogEvent[];
  readonly cursor: string | null;
  readonly isLoading: boolean;
  readonly problem: Problem | null;
  readonly held: readonly LogEvent[];
}

const EMPTY: State = { events: [], cursor: null, isLoading: true, problem: null, held: [] };

const addNew = (state: State, fresh: readonly LogEvent[], isPaused: boolean): State => {
  if (isPaused) return { ...state, held: [...state.held, ...fresh].slice(-MAX_EVENTS) };
  const newest = state.events[0]?.position ?? 0;
  const later = fresh.filter(({ position }) => position > newest).toReversed();
  return later.length === 0 ? state : { ...state, events: [...later, ...state.events].slice(0, MAX_EVENTS) };
};

type Given = Filters & { readonly at: number | null };

const readPage = (key: string, cursor: string | null, signal?: AbortSignal) => {
  const { at, ...given } = JSON.parse(key) as Given;
  const query = {
    ...given,
    order: 'desc',
    limit: PAGE,
    ...(at === null ? {} : { at }),
    ...(cursor === null ? {} : { cursor }),
  } as EventsQuery;
  return client.http.readEvents({ query, ...(signal ? { signal } : {}) });
};

/** Events of a file; more of them come from `antiphon events list --json`. */
const MAX_SAVED = 50_000;

/** Reads every event of a filtered view, oldest first. Throws if there are too many for a file. */
export const readWhole = async (filters: Filters, at: number | null): Promise<readonly LogEvent[]> => {
  const found: LogEvent[] = [];
  let cursor: string | null = null;
  do {
    const query: object = { ...filters, limit: 1_000, ...(at !== null && { at }), ...(cursor && { cursor }) };
    const page = await client.http.readEvents({ query: query as EventsQuery });
    found.push(...page.events);
    cursor = page.nextCursor;
    if (found.length > MAX_SAVED)
      throw new Error(`More than ${MAX_SAVED} events match. Filter them, or use antiphon events list --json`);
  } while (cursor !== null);
  return found;
};

interface Tail {
  readonly take: (fresh: readonly LogEvent[]) => void;
  readonly refresh: () => void;
}

/** Follows new events. Filters that only the gateway can decide make it read again. */
const useTail = (key: string, { take, refresh }: Tail): void => {
  const latest = useRef({ take, refresh });
  latest.current = { take, refresh };
  useEffect(() => {
    const { at, ...given } = JSON.parse(key) as Given;
    if (at !== null) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = onEvents((events) => {
      const decided = events.map((event) => [event, matches(event, given)] as const);
      const fresh = decided.filter(([, does]) => does === true).map(([event]) => event);
      if (fresh.length > 0) latest.current.take(fresh);
      if (!decided.some(([, does]) => does === null)) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        latest.current.refresh();
      }, SOON_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [key]);
};

/** Reads the log backwards from the position of the page, and follows new events at its top. */
export const useEventList = (filters: Filters, at: number | null, isPaused: boolean): EventList => {
  const key = JSON.stringify({ ...filters, at });
  const [state, setState] = useState<State>(EMPTY);
  const [round, setRound] = useState(0);
  const shownKey = useRef('');

  useEffect(() => {
    const abort = new AbortController();
    const isSame = shownKey.current === key;
    shownKey.current = key;
    setState((before) => (isSame ? { ...before, isLoading: true } : EMPTY));
    readPage(key, null, abort.signal).then(
      ({ events, nextCursor }) =>
        setState({ events, cursor: nextCursor, isLoading: false, problem: null, held: [] }),
      (error: unknown) => {
        if (!abort.signal.aborted) setState({ ...EMPTY, isLoading: false, problem: toProblem(error) });
      },
    );
    return () => abort.abort();
  }, [key, round]);

  useEffect(() => {
    if (!isPaused) setState((before) => addNew({ ...before, held: [] }, before.held, false));
  }, [isPaused]);

  useTail(key, {
    take: (fresh) => setState((before) => addNew(before, fresh, isPaused)),
    refresh: () => isPaused || setRound((count) => count + 1),
  });

  const { cursor, isLoading } = state;
  const loadOlder = useCallback(() => {
    if (cursor === null || isLoading) return;
    setState((before) => ({ ...before, isLoading: true }));
    readPage(key, cursor).then(
      ({ events, nextCursor }) => setState((before) => addOlder(before, events, nextCursor)),
      (error: unknown) => setState((before) => ({ ...before, isLoading: false, problem: toProblem(error) })),
    );
  }, [key, cursor, isLoading]);

  const { events, problem, held } = state;
  return { events, hasOlder: cursor !== null, isLoading, problem, waiting: held.length, loadOlder };
};

const addOlder = (state: State, older: readonly LogEvent[], cursor: string | null): State => ({
  ...state,
  events: [...state.events, ...older],
  cursor,
  isLoading: false,
});
