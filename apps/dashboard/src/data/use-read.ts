import type { LogEvent, RouteName, RouteReply, RouteRequest } from '@antiphon/client';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { usePosition } from './router.js';
import { client } from './gateway.js';
import { isFollowing, onEvents } from './live-log.js';
import { shareEqual } from './share-equal.js';
import { createStore, useStore } from './store.js';

/** A failed read, for a person. */
export interface Problem {
  readonly message: string;
  readonly code: string | null;
  readonly status: number | null;
}

export interface Read<T> {
  readonly data: T | undefined;
  readonly problem: Problem | null;
  readonly isLoading: boolean;
  readonly refresh: () => void;
}

export interface ReadOptions {
  /** Selects the events after which the read is made again, in the present. */
  readonly changesOn?: (event: LogEvent) => boolean;
  /** False reads the present on a page of the past, for reads that have no past. */
  readonly hasPast?: boolean;
  /** Skips the read. */
  readonly isOff?: boolean;
}

export const toProblem = (error: unknown): Problem => {
  const { message, code, status } = (error ?? {}) as Partial<Problem>;
  return { message: message ?? 'unknown error', code: code ?? null, status: status ?? null };
};

const MAX_CACHED = 200;
const cache = new Map<string, unknown>();
const remember = (key: string, value: unknown): void => {
  // Parts that have not changed keep their objects, so that only changed rows render.
  const shared = shareEqual(cache.get(key), value);
  cache.delete(key);
  cache.set(key, shared);
  for (const oldest of cache.keys()) {
    if (cache.size <= MAX_CACHED) return;
    cache.delete(oldest);
  }
};

/** Forgets all reads: after a sign-in or a sign-out. */
export const forgetReads = (): void => cache.clear();

/** Delays of a read after an event. Read models follow the log a little later, so it repeats. */
const SOON_MS = 60;
const SETTLED_MS = 700;
/** Time between two reads while events continue. A reply that takes longer is waited for. */
const BETWEEN_MS = 250;

/** Number of parts of the page that show an older position while theirs is read. */
export const outdated = createStore(0);

interface Fetch<T> {
  readonly key: string | null;
  readonly fetchIt: (signal: AbortSignal) => Promise<T>;
}

/** Reads when the key or the round changes. A read that is no longer wanted is ended. */
const useRounds = <T>({ key, fetchIt }: Fetch<T>, round: number) => {
  const [, render] = useState(0);
  const [failure, setFailure] = useState<{ key: string; problem: Problem } | null>(null);
  const latest = useRef(fetchIt);
  latest.current = fetchIt;
  const isOn = useStore(isFollowing);
  const isOpen = useRef(false);
  useEffect(() => {
    isOpen.current = key !== null;
    if (key === null) return;
    const abort = new AbortController();
    const end = (change: () => void): void => {
      if (abort.signal.aborted) return;
      isOpen.current = false;
      change();
    };
    latest.current(abort.signal).then(
      (value) => {
        remember(key, value);
        end(() => {
          setFailure(null);
          render((count) => count + 1);
        });
      },
      (error: unknown) => end(() => setFailure({ key, problem: toProblem(error) })),
    );
    return () => abort.abort();
  }, [key, round, isOn]);
  return { problem: failure !== null && failure.key === key ? failure.problem : null, isOpen };
};

/**
 * Calls back after events that a read depends on: soon, and once the read models have settled. Many
 * events cause few reads, and none while one is open.
 */
const useChanges = (
  changesOn: ReadOptions['changesOn'],
  refresh: () => void,
  isOpen: { readonly current: boolean },
): void => {
  const latest = useRef(changesOn);
  latest.current = changesOn;
  const isLive = changesOn !== undefined;
  useEffect(() => {
    if (!isLive) return;
    let soon: ReturnType<typeof setTimeout> | undefined;
    let settled: ReturnType<typeof setTimeout> | undefined;
    let readAt = Number.NEGATIVE_INFINITY;
    const read = (): void => {
      soon = undefined;
      if (isOpen.current) return void (soon = setTimeout(read, BETWEEN_MS));
      readAt = performance.now();
      refresh();
    };
    const stop = onEvents((events) => {
      if (!events.some((event) => latest.current?.(event))) return;
      soon ??= setTimeout(read, Math.max(SOON_MS, readAt + BETWEEN_MS - performance.now()));
      clearTimeout(settled);
      settled = setTimeout(refresh, SETTLED_MS);
    });
    return () => {
      stop();
      clearTimeout(soon);
      clearTimeout(settled);
    };
  }, [isLive, refresh]);
};

/**
 * Reads something, and again when it may have changed. A page of the past keeps what it has until
 * the position changes.
 */
export const useFetched = <T>(
  key: string | null,
  fetchIt: (signal: AbortSignal) => Promise<T>,
  changesOn?: (event: LogEvent) => boolean,
): Read<T> => {
  const [round, setRound] = useState(0);
  const refresh = useCallback(() => setRound((count) => count + 1), []);
  const { problem, isOpen } = useRounds({ key, fetchIt }, round);
  useChanges(changesOn, refresh, isOpen);
  const cached = key === null ? undefined : (cache.get(key) as T | undefined);
  return { data: cached, problem, isLoading: key !== null && cached === undefined && !problem, refresh };
};

/** Marks the page while a part of it shows an older position. */
export const useOutdated = (isOutdated: boolean): void =>
  useEffect(() => {
    if (!isOutdated) return;
    outdated.update((count) => count + 1);
    return () => outdated.update((count) => count - 1);
  }, [isOutdated]);

/**
 * Returns the last shown value while the one of another position is read, so that a drag does not
 * empty the page. A value of the present is never shown in the past.
 */
const useLastShown = <T>(read: Read<T>, family: string, at: number | null): Read<T> => {
  const last = useRef<{ family: string; data: T } | null>(null);
  if (at === null) last.current = null;
  else if (read.data !== undefined) last.current = { family, data: read.data };
  const kept = last.current?.family === family ? last.current.data : undefined;
  const isOutdated = read.isLoading && kept !== undefined;
  useOutdated(isOutdated);
  return isOutdated ? { ...read, data: kept, isLoading: false } : read;
};

const REST_MS = 40;

/** Delays the reads of positions that a drag passes quickly. The first position is read at once. */
const useSettledKey = (key: string | null, at: number | null): string | null => {
  const [settled, setSettled] = useState(key);
  const changedAt = useRef(Number.NEGATIVE_INFINITY);
  useEffect(() => {
    if (settled === key) return;
    const isQuick = performance.now() - changedAt.current < REST_MS * 3;
    changedAt.current = performance.now();
    const timer = setTimeout(() => setSettled(key), isQuick ? REST_MS : 0);
    return () => clearTimeout(timer);
  }, [key, settled]);
  return at === null ? key : settled;
};

export type AnyCall = (request: unknown) => Promise<unknown>;
type Reader = (call: AnyCall, request: { readonly query?: object }) => Promise<unknown>;

const readOnce: Reader = (call, request) => call(request);

/** Reads a route of the API at the position of the page. */
export const useRead = <N extends RouteName>(
  name: N,
  request: Omit<RouteRequest<N>, 'signal'>,
  options: ReadOptions = {},
): Read<RouteReply<N>> => useReadBy(name, request, options, readOnce);

/** Reads as `useRead` does, by one or more calls of the route. */
export const useReadBy = <N extends RouteName>(
  name: N,
  request: Omit<RouteRequest<N>, 'signal'>,
  options: ReadOptions,
  reader: Reader,
): Read<RouteReply<N>> => {
  const { changesOn, hasPast = true, isOff = false } = options;
  const position = usePosition();
  const at = hasPast ? position : null;
  const text = JSON.stringify(request);
  const key = isOff ? null : `${name} ${text} ${at ?? ''}`;
  const latest = useRef(reader);
  latest.current = reader;
  const fetchIt = useMemo(
    () => (signal: AbortSignal) => {
      const given = JSON.parse(text) as { query?: object };
      const query = at === null ? given.query : { ...given.query, at };
      const call = client.http[name] as AnyCall;
      return latest.current(call, { ...given, query, signal } as object) as Promise<RouteReply<N>>;
    },
    [name, text, at],
  );
  const settled = useSettledKey(key, at);
  const read = useFetched(settled, fetchIt, at === null ? changesOn : undefined);
  const isBehind = settled !== key;
  return useLastShown(
    isBehind ? { ...read, data: undefined, problem: null, isLoading: true } : read,
    `${name} ${text}`,
    at,
  );
};
