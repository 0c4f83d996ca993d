import type { LogEvent } from '@antiphon/client';
import { client, connection, isSignedOut } from './gateway.js';
import { createStore } from './store.js';

/** Number of newest events that the tab keeps. */
const RECENT = 500;

/** Position of the newest event of the log; null until the gateway has told it. */
export const head = createStore<number | null>(null);
/** Newest events since this tab was opened, oldest first. */
export const recentEvents = createStore<readonly LogEvent[]>([]);

/** True while every event from now on arrives. A view that was read before reads again. */
export const isFollowing = createStore(false);

/** Longest time for which the first reads wait for the log, ms. */
const START_MS = 500;
/**
 * True once reads may begin: the log is followed, or does not come. A read from before would be
 * made again.
 */
export const mayRead = createStore(false);
isFollowing.subscribe(() => isFollowing.get() && mayRead.set(true));

type Listener = (events: readonly LogEvent[]) => void;
const listeners = new Set<Listener>();

/** Calls back with each batch of new events, in the order of the log. */
export const onEvents = (listener: Listener): (() => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

let batch: LogEvent[] = [];
let frame: number | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Longest wait for a frame: a hidden tab has none. */
const MAX_WAIT_MS = 100;

const flush = (): void => {
  if (frame !== undefined) cancelAnimationFrame(frame);
  clearTimeout(timer);
  [frame, timer] = [undefined, undefined];
  const events = batch;
  batch = [];
  const last = events.at(-1);
  if (!last) return;
  raiseHead(last.position);
  recentEvents.update((before) => [...before, ...events].slice(-RECENT));
  for (const listener of listeners) listener(events);
};

/** Raises the head. Positions of replies may be ahead of the subscription. */
export const raiseHead = (position: number): void =>
  head.update((before) => (before === null || position > before ? position : before));

const learnHead = async (told: number | null): Promise<void> => {
  if (told !== null) return raiseHead(told);
  const reply = await client.http.readEvents({ query: { order: 'desc', limit: 1 } });
  raiseHead(reply.head);
};

/** Cursor after the last event, at which a new subscription continues. */
let cursor: string | undefined;

const follow = async (): Promise<void> => {
  const stream = client.events({ from: cursor });
  cursor = undefined;
  let stop: (() => void) | undefined;
  // Later connections continue at the cursor.
  const update = (): void => isFollowing.set(connection.get().state === 'connected');
  const start = (): Promise<void> => {
    update();
    stop = connection.subscribe(update);
    return learnHead(stream.head);
  };
  void stream.ready.then(start).catch(() => undefined);
  try {
    for await (const { event } of stream) {
      batch.push(event);
      // All events of a frame are one change of the page.
      frame ??= requestAnimationFrame(flush);
      timer ??= setTimeout(flush, MAX_WAIT_MS);
    }
  } finally {
    // A cursor that was refused is not tried again.
    if (stop) cursor = stream.cursor;
    stop?.();
    isFollowing.set(false);
  }
};

const whenSignedIn = (): Promise<void> =>
  new Promise((resolve) => {
    if (!isSignedOut.get()) return resolve();
    const stop = isSignedOut.subscribe(() => {
      if (isSignedOut.get()) return;
      stop();
      resolve();
    });
  });

const RETRY_MS = 2_000;

/** Follows the log of the workspace for the life of the tab. */
export const startLiveLog = (): void => {
  setTimeout(() => mayRead.set(true), START_MS);
  const run = (): void =>
    void follow().catch(() => setTimeout(() => void whenSignedIn().then(run), RETRY_MS));
  run();
};
