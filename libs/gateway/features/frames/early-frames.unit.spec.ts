import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Frame, LiveFrame } from '@antiphon/contracts/agent';
import { createMemoryEventStore } from '@antiphon/event-store/testing';
import { createSessionScript } from '../testing/session-script.js';
import { EarlyFrames } from './early-frames.js';
import { FrameLog } from './frame-log.js';
import { SessionFeeds, type FrameBus } from './session-feeds.js';

beforeEach(() => void jest.useFakeTimers({ doNotFake: ['queueMicrotask'] }));
afterEach(() => void jest.useRealTimers());

const frame = (turnId: string, offset: number): LiveFrame => ({
  ...{ turnId, offset, prev: offset - 1, epoch: 1, event: 'text', data: 'x' },
});

/** Feeds on a bus whose messages the spec sends, and a log that counts its reads. */
const createWorld = () => {
  const store = createMemoryEventStore();
  const listeners = new Map<string, (text: string) => void>();
  let reads = 0;
  const bus: FrameBus = {
    subscribe: (subject, onMessage) => {
      listeners.set(subject.split('.')[0] ?? '', onMessage);
      return () => undefined;
    },
    flushSubscriptions: () => Promise.resolve(),
    replay: () => Promise.resolve(),
    onReconnect: () => () => undefined,
  };
  const log = new FrameLog({
    readStreamPage: (...args) => (reads++, store.readStreamPage(...args)),
    streamVersion: (...args) => store.streamVersion(...args),
  });
  const feeds = new SessionFeeds(bus, log, () => Date.now());
  const script = createSessionScript();
  return {
    feeds,
    script,
    countReads: () => reads,
    publish: (frames: readonly Frame[]) =>
      frames.forEach((one) => listeners.get('live')?.(JSON.stringify({ ...one, epoch: 1 }))),
    follow: (turnId: string, after: number | null) => {
      const delivered: Frame[] = [];
      const leave = feeds.follow({
        ...{ workspace: 'default', sessionId: script.sessionId, turnId, after, catchUp: false },
        deliver: (one) => (delivered.push(one), one.event === 'done' && leave()),
        onError: () => undefined,
      });
      return delivered;
    },
  };
};

describe('frames of a turn that come before its follower', () => {
  it('are delivered once, in order, without a read of the log', async () => {
    const { script, follow, publish, countReads, feeds } = createWorld();
    script.turn('one');
    const first = script.frames();
    const before = follow(first[0]?.turnId ?? '', 0);
    publish(first);
    expect(before).toEqual(first.map((one) => expect.objectContaining({ offset: one.offset })));
    script.turn('two', ' three');
    const second = script.frames().slice(first.length);
    publish(second.slice(0, 3));
    const delivered = follow(second[0]?.turnId ?? '', second[0]?.offset ?? 0);
    // The caller cannot end its following before it has the function that ends it.
    expect(delivered).toEqual([]);
    await Promise.resolve();
    publish(second.slice(2));
    expect(delivered.map(({ offset }) => offset)).toEqual(second.slice(1).map(({ offset }) => offset));
    expect(delivered.at(-1)?.event).toBe('done');
    expect(countReads()).toBe(0);
    feeds.close();
  });

  it('are those of the newest turn only, and taken once', () => {
    const early = new EarlyFrames();
    early.add(frame('old', 1), 10);
    early.add(frame('new', 2), 10);
    expect(early.take('old')).toEqual([]);
    expect(early.take('new').map(({ offset }) => offset)).toEqual([2]);
    expect(early.take('new')).toEqual([]);
  });

  it('are bounded in number, bytes and time', () => {
    const early = new EarlyFrames();
    for (let offset = 1; offset <= 100; offset++) early.add(frame('a', offset), 10);
    expect(early.take('a')).toHaveLength(64);
    for (let offset = 1; offset <= 10; offset++) early.add(frame('a', offset), 10_000);
    expect(early.take('a')).toHaveLength(6);
    early.add(frame('a', 1), 10);
    jest.advanceTimersByTime(999);
    early.add(frame('a', 2), 10);
    jest.advanceTimersByTime(1);
    expect(early.take('a')).toEqual([]);
  });
});
