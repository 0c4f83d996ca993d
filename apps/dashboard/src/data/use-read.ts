import type { LogEvent, RouteName, RouteReply, RouteRequest } from '@antiphon/client';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { usePosition } from '../app/router.js';
import { client } from './gateway.js';
import { isFollowing, onEvents } from './live-log.js';
import { useStore } from './store.js';

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
  cache.delete(key);
  cache.set(key, value);
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

/**
 * Reads something, and again when it may have changed. A page of the past keeps what it has until
 * the position changes.
 */
export const useFetched = <T>(
  key: string | null,
  fetchIt: (signal: AbortSignal) => Promise<T>,
  changesOn?: (event: LogEvent) => boolean,
): Read<T> => {
  const [, render] = useState(0);
  const [failure, setFailure] = useState<{ key: string; problem: Problem } | null>(null);
  const [round, setRound] = useState(0);
  const latest = useRef({ fetchIt, changesOn });
  latest.current = { fetchIt, changesOn };
  const shown = useRef<T | undefined>(undefined);
  const refresh = useCallback(() => setRound((count) => count + 1), []);
  const isConnected = useStore(isFollowing);

  useEffect(() => {
    if (key === null) return;
    const abort = new AbortController();
    latest.current.fetchIt(abort.signal).then(
      (value) => {
        if (abort.signal.aborted) return;
        remember(key, value);
        setFailure(null);
        render((count) => count + 1);
      },
      (error: unknown) => {
        if (!abort.signal.aborted) setFailure({ key, problem: toProblem(error) });
      },
    );
    return () => abort.abort();
  }, [key, round, isConnected]);

  const isLive = changesOn !== undefined;
  useEffect(() => {
    if (!isLive) return;
    let soon: ReturnType<typeof setTimeout> | undefined;
    let settled: ReturnType<typeof setTimeout> | undefined;
    const stop = onEvents((events) => {
      if (!events.some((event) => latest.current.changesOn?.(event))) return;
      soon ??= setTimeout(() => {
        soon = undefined;
        refresh();
      }, SOON_MS);
      clearTimeout(settled);
      settled = setTimeout(refresh, SETTLED_MS);
    });
    return () => {
      stop();
      clearTimeout(soon);
      clearTimeout(settled);
    };
  }, [isLive, refresh]);

  const cached = key === null ? undefined : (cache.get(key) as T | undefined);
  if (cached !== undefined) shown.current = cached;
  const problem = failure !== null && failure.key === key ? failure.problem : null;
  return { data: cached, problem, isLoading: key !== null && cached === undefined && !problem, refresh };
};

type AnyCall = (request: unknown) => Promise<unknown>;

/** Reads a route of the API at the position of the page. */
export const useRead = <N extends RouteName>(
  name: N,
  request: Omit<RouteRequest<N>, 'signal'>,
  options: ReadOptions = {},
): Read<RouteReply<N>> => {
  const { changesOn, hasPast = true, isOff = false } = options;
  const position = usePosition();
  const at = hasPast ? position : null;
  const text = JSON.stringify(request);
  const key = isOff ? null : `${name} ${text} ${at ?? ''}`;
  const fetchIt = useMemo(
    () => (signal: AbortSignal) => {
      const given = JSON.parse(text) as { query?: object };
      const query = at === null ? given.query : { ...given.query, at };
      return (client.http[name] as AnyCall)({ ...given, query, signal }) as Promise<RouteReply<N>>;
    },
    [name, text, at],
  );
  return useFetched(key, fetchIt, at === null ? changesOn : undefined);
};
