import type { LogEvent } from '@antiphon/client';
import { useCallback, useEffect, useRef, useState } from 'react';
import { client } from '../../data/gateway.js';
import { onEvents } from '../../data/live-log.js';
import { toProblem, type Problem } from '../../data/use-read.js';
import { addNewer, addOlder, addRecorded, MAX_EVENTS, type EventWindow, type Older } from './event-window.js';
import { matches, type EventsQuery, type Filters } from './event-query.js';

const PAGE = 200;
/** Newer events that were dropped come back in larger pages. */
const NEWER_PAGE = 1_000;
const SOON_MS = 300;

export interface EventList {
  /** Newest first. */
  readonly events: readonly LogEvent[];
  readonly hasOlder: boolean;
  /** Number of newer events that are not in memory. */
  readonly dropped: number;
  readonly isLoading: boolean;
  readonly problem: Problem | null;
  /** New events that a paused tail holds back. */
  readonly waiting: number;
  readonly loadOlder: () => void;
  readonly loadNewer: () => void;
}

interface State extends EventWindow {
  readonly isLoading: boolean;
  readonly problem: Problem | null;
  readonly held: readonly LogEvent[];
}

const EMPTY: State = { events: [], older: null, dropped: 0, isLoading: true, problem: null, held: [] };

const addNew = (state: State, fresh: readonly LogEvent[], isPaused: boolean): State => {
  if (isPaused) return { ...state, held: [...state.held, ...fresh].slice(-MAX_EVENTS) };
  const window = addRecorded(state, fresh);
  return window === state ? state : { ...state, ...window };
};

type Page = Awaited<ReturnType<typeof readPage>>;
type Given = Filters & { readonly at: number | null };

const readPage = (key: string, older: Older, signal?: AbortSignal) => {
  const { at, ...given } = JSON.parse(key) as Given;
  const query = {
    ...given,
    order: 'desc',
    limit: PAGE,
    ...(at === null ? {} : { at }),
    ...(older !== null && ('cursor' in older ? older : { at: Math.max(1, older.before - 1) })),
  } as EventsQuery;
  return client.http.readEvents({ query, ...(signal ? { signal } : {}) });
};

const readNewer = (key: string, after: number) => {
  const { at, ...given } = JSON.parse(key) as Given;
  const query: object = { ...given, after, limit: NEWER_PAGE, ...(at !== null && { at }) };
  return client.http.readEvents({ query: query as EventsQuery });
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
        setState({ ...addOlder(EMPTY, events, nextCursor), isLoading: false, problem: null, held: [] }),
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

  const { events, older, dropped, isLoading, problem, held } = state;
  const load = useCallback(
    (page: ReturnType<typeof readPage>, add: (window: State, page: Page) => EventWindow) => {
      setState((before) => ({ ...before, isLoading: true }));
      const isSame = (): boolean => shownKey.current === key;
      page.then(
        (found) =>
          isSame() &&
          setState((before) => ({ ...before, ...add(before, found), isLoading: false, problem: null })),
        (error: unknown) =>
          isSame() && setState((before) => ({ ...before, isLoading: false, problem: toProblem(error) })),
      );
    },
    [key],
  );
  const loadOlder = (): void => {
    if (older === null || isLoading) return;
    load(readPage(key, older), (window, page) => addOlder(window, page.events, page.nextCursor));
  };
  const newest = events[0]?.position;
  const loadNewer = (): void => {
    // A failed read is not repeated by itself.
    if (dropped === 0 || isLoading || problem || newest === undefined) return;
    load(readNewer(key, newest), (window, page) => addNewer(window, page.events, page.nextCursor === null));
  };
  const hasOlder = older !== null;
  return { events, hasOlder, dropped, isLoading, problem, waiting: held.length, loadOlder, loadNewer };
};
