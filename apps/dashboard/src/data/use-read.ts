import type { LogEvent, RouteName, RouteReply, RouteRequest } from '@antiphon/client';
import { useQuery } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { usePosition } from './router.js';
import { client } from './gateway.js';
import { queries, watchRead } from './query-cache.js';
import { mayRead } from './live-log.js';
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

/** Number of parts of the page that show an older position while theirs is read. */
export const outdated = createStore(0);

/** Key of a read that is not made. */
const OFF = 'off';

/** Returns the problem of the last try, until a later one succeeds. */
const useProblem = (key: string | null, error: unknown, hasSucceeded: boolean): Problem | null => {
  const last = useRef<{ key: string | null; error: unknown; problem: Problem } | null>(null);
  if (error !== null && last.current?.error !== error)
    last.current = { key, error, problem: toProblem(error) };
  else if (hasSucceeded || last.current?.key !== key) last.current = null;
  return last.current?.problem ?? null;
};

/**
 * Reads something, and again when it may have changed. A page of the past keeps what it has until
 * the position changes. Parts of the page with the same key share one request.
 */
export const useFetched = <T>(
  key: string | null,
  fetchIt: (signal: AbortSignal) => Promise<T>,
  changesOn?: (event: LogEvent) => boolean,
): Read<T> => {
  const isTime = useStore(mayRead);
  const query = useQuery(
    {
      queryKey: [key ?? OFF],
      // A read without a reply has null: the cache has no undefined values.
      queryFn: async ({ signal }) => (await fetchIt(signal)) ?? null,
      enabled: key !== null && isTime,
    },
    queries,
  );
  const { refetch } = query;
  const refresh = useCallback(() => void refetch(), [refetch]);
  const selects = useRef(changesOn);
  selects.current = changesOn;
  const isLive = changesOn !== undefined;
  useEffect(() => (isLive && key !== null ? watchRead(key, selects) : undefined), [isLive, key]);
  const problem = useProblem(key, query.error, query.isSuccess && query.error === null);
  const data = key === null ? undefined : (query.data as T | undefined);
  return { data, problem, isLoading: key !== null && data === undefined && !problem, refresh };
};

/** Marks the page while a part of it shows an older position. */
export const useOutdated = (isOutdated: boolean): void =>
  useEffect(() => {
    if (!isOutdated) return;
    outdated.update((count) => count + 1);
    return () => outdated.update((count) => count - 1);
  }, [isOutdated]);

/** A read of a position, or of a number of pages of a list. */
interface Wanted {
  /** Route and request, without position and pages. */
  readonly family: string;
  readonly at: number | null;
  /** True for a list of which more pages are read. */
  readonly isGrowing: boolean;
}

/**
 * Returns the last shown value while the one of another position, or a longer list, is read, so
 * that the page does not empty. A value of the present is never shown in the past.
 */
const useLastShown = <T>(read: Read<T>, { family, at, isGrowing }: Wanted): KeptRead<T> => {
  const last = useRef<{ family: string; isPast: boolean; data: T } | null>(null);
  const isPast = at !== null;
  if (read.data !== undefined) last.current = { family, isPast, data: read.data };
  const isSame = last.current?.family === family && last.current.isPast === isPast;
  const kept = isSame && (isPast || isGrowing) ? last.current?.data : undefined;
  const isKept = read.data === undefined && kept !== undefined && (read.isLoading || isGrowing);
  useOutdated(isKept && !isGrowing);
  return isKept ? { ...read, data: kept, isLoading: false, isKept } : { ...read, isKept };
};

/** A read that may show the value before. */
export interface KeptRead<T> extends Read<T> {
  readonly isKept: boolean;
}

const REST_MS = 40;

/** Delays the reads of positions that a drag passes quickly. The first position is read at once. */
const useSettled = <T>(value: T, at: number | null): T => {
  const [settled, setSettled] = useState(value);
  const changedAt = useRef(Number.NEGATIVE_INFINITY);
  useEffect(() => {
    if (settled === value) return;
    const isQuick = performance.now() - changedAt.current < REST_MS * 3;
    changedAt.current = performance.now();
    const timer = setTimeout(() => setSettled(value), isQuick ? REST_MS : 0);
    return () => clearTimeout(timer);
  }, [value, settled]);
  return at === null ? value : settled;
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

/** Reads as `useRead` does, by one or more calls of the route. `pages` is 1 without a list. */
export const useReadBy = <N extends RouteName>(
  name: N,
  request: Omit<RouteRequest<N>, 'signal'>,
  options: ReadOptions,
  reader: Reader,
  pages = 1,
): KeptRead<RouteReply<N>> => {
  const { changesOn, hasPast = true, isOff = false } = options;
  const position = usePosition();
  const at = hasPast ? position : null;
  const text = JSON.stringify(request);
  const latest = useRef(reader);
  latest.current = reader;
  const wanted = useMemo(() => {
    const fetchIt = (signal: AbortSignal): Promise<RouteReply<N>> => {
      const given = JSON.parse(text) as { query?: object };
      const query = at === null ? given.query : { ...given.query, at };
      const call = client.http[name] as AnyCall;
      return latest.current(call, { ...given, query, signal } as object) as Promise<RouteReply<N>>;
    };
    const more = pages > 1 ? ` ${pages} pages` : '';
    return { key: isOff ? null : `${name} ${text} ${at ?? ''}${more}`, fetchIt };
  }, [name, text, at, isOff, pages]);
  const settled = useSettled(wanted, at);
  const read = useFetched(settled.key, settled.fetchIt, at === null ? changesOn : undefined);
  const isBehind = settled !== wanted;
  return useLastShown(isBehind ? { ...read, data: undefined, problem: null, isLoading: true } : read, {
    family: `${name} ${text}`,
    at,
    isGrowing: pages > 1,
  });
};
