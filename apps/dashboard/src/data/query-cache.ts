import { CLIENT_ERRORS, type LogEvent } from '@antiphon/client';
import { QueryClient, type Query } from '@tanstack/react-query';
import { boundCache } from './bound-cache.js';
import { isFollowing, onEvents } from './live-log.js';
import { shareEqual } from './share-equal.js';

/** Number of reads that are kept for pages that may be shown again. */
const MAX_CACHED = 200;
/** Time for which a read without events after it serves a part of the page that appears later. */
const FRESH_MS = 5_000;
/** Time after an event within which read models may still lack it. */
const SETTLED_MS = 700;

let lastEventAt = Number.NEGATIVE_INFINITY;
onEvents(() => (lastEventAt = Date.now()));

/** Only an event of the log makes a read stale, as long as every event arrives. */
const staleTimeOf = ({ state }: Query): number =>
  isFollowing.get() && state.dataUpdatedAt > lastEventAt + SETTLED_MS ? FRESH_MS : 0;

const TRIES = 3;
/** Statuses of a gateway whose service is not ready. */
const NOT_READY: ReadonlySet<unknown> = new Set([502, 503, 504]);
/** Returns true if another try may succeed: there was no reply, or a service is not ready. */
const isTransient = (error: unknown): boolean => {
  const { status, code } = (error ?? {}) as Readonly<Record<'status' | 'code', unknown>>;
  return code === CLIENT_ERRORS.unreachable || NOT_READY.has(status);
};

/** Reads of this tab: parts of the page that read the same share one request and its reply. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      networkMode: 'always',
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      retry: (failures, error) => failures + 1 < TRIES && isTransient(error),
      retryDelay: (failures) => 300 * 2 ** failures,
      staleTime: (query) => staleTimeOf(query as Query),
      // Parts that have not changed keep their objects, so that only changed rows render.
      structuralSharing: shareEqual,
    },
  },
});

boundCache(queries, MAX_CACHED);

// A view that was read before the log was followed may lack what happened since.
isFollowing.subscribe(() => {
  if (!isFollowing.get()) return;
  void queries.cancelQueries({ type: 'active' }, { silent: true }).then(() => queries.invalidateQueries());
});

/** Forgets all reads: after a sign-in or a sign-out. */
export const forgetReads = (): void => queries.clear();

/** Delays of a read after an event. Read models follow the log a little later, so it repeats. */
const SOON_MS = 60;
/** Time between two reads while events continue. A reply that takes longer is waited for. */
const BETWEEN_MS = 250;

type Selects = (event: LogEvent) => boolean;

/** Reads one key again after the events that its users select: soon, and once more when settled. */
class WatchedRead {
  readonly #users = new Set<{ readonly current: Selects | undefined }>();
  #soon: ReturnType<typeof setTimeout> | undefined;
  #settled: ReturnType<typeof setTimeout> | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  readonly #stop: () => void;

  constructor(private readonly key: string) {
    this.#stop = onEvents((events) => {
      if (!events.some((event) => [...this.#users].some(({ current }) => current?.(event)))) return;
      this.#soon ??= setTimeout(
        () => this.#read(),
        Math.max(SOON_MS, this.#readAt + BETWEEN_MS - performance.now()),
      );
      clearTimeout(this.#settled);
      this.#settled = setTimeout(() => this.#readSettled(), SETTLED_MS);
    });
  }

  add(user: { readonly current: Selects | undefined }): void {
    this.#users.add(user);
  }

  /** Returns true if the last user is gone. */
  remove(user: { readonly current: Selects | undefined }): boolean {
    this.#users.delete(user);
    if (this.#users.size > 0) return false;
    this.#stop();
    clearTimeout(this.#soon);
    clearTimeout(this.#settled);
    return true;
  }

  get #isOpen(): boolean {
    return queries.isFetching({ queryKey: [this.key], exact: true }) > 0;
  }

  #read(): void {
    this.#soon = undefined;
    if (this.#isOpen) return void (this.#soon = setTimeout(() => this.#read(), BETWEEN_MS));
    this.#refetch();
  }

  #readSettled(): void {
    if (this.#isOpen) return void (this.#settled = setTimeout(() => this.#readSettled(), BETWEEN_MS));
    this.#refetch();
  }

  #refetch(): void {
    this.#readAt = performance.now();
    void queries.refetchQueries({ queryKey: [this.key], exact: true });
  }
}

const watched = new Map<string, WatchedRead>();

/**
 * Reads a key again after the events that `user` selects, in the present. Many events cause few
 * reads, none while one is open, and one for all users of the key. Returns its end.
 */
export const watchRead = (key: string, user: { readonly current: Selects | undefined }): (() => void) => {
  const read = watched.get(key) ?? new WatchedRead(key);
  watched.set(key, read);
  read.add(user);
  return () => {
    if (read.remove(user)) watched.delete(key);
  };
};
