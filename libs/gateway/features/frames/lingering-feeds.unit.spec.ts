import { randomUUID } from 'node:crypto';
import { afterEach, expect, it, jest } from '@jest/globals';
import { createMemoryEventStore } from '@antiphon/event-store/testing';
import { FrameLog } from './frame-log.js';
import { MAX_LINGERING, SessionFeeds, type FrameBus } from './session-feeds.js';

/** Subscriptions of all feeds together: the progress of tools. */
const OF_ALL = 1;
/** Subscriptions of one feed: its frames and the ends of its turns. */
const OF_A_FEED = 2;

const subscribed = new Set<string>();
const bus: FrameBus = {
  subscribe: (subject) => {
    subscribed.add(subject);
    return () => void subscribed.delete(subject);
  },
  flushSubscriptions: () => Promise.resolve(),
  replay: () => Promise.resolve(),
  onReconnect: () => () => undefined,
};

let feeds: SessionFeeds;
const open = (): void => {
  jest.useFakeTimers();
  feeds = new SessionFeeds(bus, new FrameLog(createMemoryEventStore()), () => Date.now());
};
const follow = (sessionId: string): (() => void) =>
  feeds.follow({
    ...{ workspace: 'default', sessionId, turnId: randomUUID(), after: null, catchUp: false },
    ...{ deliver: () => undefined, onError: () => undefined },
  });
afterEach(() => {
  feeds.close();
  jest.useRealTimers();
});

it('keeps the subscriptions of the newest sessions only, however many have one turn', async () => {
  open();
  const sessions = Array.from({ length: 4 * MAX_LINGERING }, () => randomUUID());
  for (const session of sessions) follow(session)();
  expect(subscribed.size).toBe(OF_ALL + OF_A_FEED * MAX_LINGERING);
  const subjects = [...subscribed];
  for (const session of sessions.slice(-MAX_LINGERING))
    expect(subjects.filter((subject) => subject.includes(session))).toHaveLength(OF_A_FEED);
  await jest.advanceTimersByTimeAsync(30_000);
  expect(subscribed.size).toBe(OF_ALL);
});

it('keeps the subscriptions of each session that has a reader', () => {
  open();
  const first = randomUUID();
  follow(first)();
  const leave = follow(first);
  for (let nth = 0; nth < 2 * MAX_LINGERING; nth++) follow(randomUUID())();
  expect([...subscribed].filter((subject) => subject.includes(first))).toHaveLength(OF_A_FEED);
  leave();
  expect(subscribed.size).toBe(OF_ALL + OF_A_FEED * MAX_LINGERING);
});
