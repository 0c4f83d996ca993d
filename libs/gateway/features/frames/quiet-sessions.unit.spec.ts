import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { sessionStream, type Frame, type SessionEvent } from '@antiphon/contracts/agent';
import { createMemoryEventStore } from '@antiphon/event-store/testing';
import { transient, type JsonObject } from '@antiphon/kernel';
import { createSessionScript, type SessionScript } from '../testing/session-script.js';
import { FrameLog } from './frame-log.js';
import { SessionFeeds, type FrameBus } from './session-feeds.js';

const MINUTE = 60_000;

/** A bus that loses every message. */
const deafBus: FrameBus = {
  subscribe: () => () => undefined,
  flushSubscriptions: () => Promise.resolve(),
  replay: () => Promise.resolve(),
  onReconnect: () => () => undefined,
};

/** Follows sessions on a log whose queries are counted. The bus loses every message. */
const createWorld = (bus: FrameBus = deafBus) => {
  const store = createMemoryEventStore();
  const counts = { versions: 0, reads: 0 };
  let isDown = false;
  const check = (): void => {
    if (isDown) throw transient('LOG.UNAVAILABLE', 'down');
  };
  const reads = {
    readStreamPage: (...args: Parameters<typeof store.readStreamPage>) => (
      counts.reads++,
      check(),
      store.readStreamPage(...args)
    ),
    streamVersion: (...args: Parameters<typeof store.streamVersion>) => (
      counts.reads++,
      store.streamVersion(...args)
    ),
  };
  const log = new FrameLog(reads, async (workspace, sessionIds) => {
    counts.versions++;
    check();
    const entries = sessionIds.map(
      async (id) => [id, await store.streamVersion(workspace, sessionStream(id))] as const,
    );
    return new Map(await Promise.all(entries));
  });
  const feeds = new SessionFeeds(bus, log, () => Date.now());
  return {
    counts,
    feeds,
    setDown: (value: boolean) => void (isDown = value),
    commit: (sessionId: string, events: readonly SessionEvent[]) =>
      store.append({
        workspace: 'default',
        streams: [
          {
            streamId: sessionStream(sessionId),
            expectedVersion: 'any',
            events: events.map(({ type, schemaVersion, data }) => ({
              ...{ eventId: randomUUID(), type, schemaVersion, data: data as unknown as JsonObject },
              metadata: { correlationId: 'spec', service: 'agent' },
            })),
          },
        ],
      }),
    /** Follows the open turn of a session whose frames were all delivered. */
    follow: (script: SessionScript): Frame[] => {
      const delivered: Frame[] = [];
      const last = script.frames().at(-1);
      feeds.follow({
        workspace: 'default',
        sessionId: script.sessionId,
        turnId: last?.turnId,
        after: last?.offset ?? null,
        catchUp: false,
        deliver: (frame) => delivered.push(frame),
        onError: () => undefined,
      });
      return delivered;
    },
  };
};
type World = ReturnType<typeof createWorld>;

/** Commits a session whose turn waits for an approval. */
const commitWaiting = async ({ commit }: World): Promise<SessionScript> => {
  const script = createSessionScript();
  script.request();
  script.begin();
  script.asks('transfer');
  await commit(script.sessionId, script.events);
  return script;
};

let world: World;
beforeEach(() => {
  jest.useFakeTimers();
  world = createWorld();
});
afterEach(() => {
  world.feeds.close();
  jest.useRealTimers();
});
const pass = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);

describe('followers of turns that wait', () => {
  // @shows review1-14
  it('of 1,000 sessions cost one read each at first, then one query per round of 30 s', async () => {
    const scripts = await Promise.all(Array.from({ length: 1_000 }, () => commitWaiting(world)));
    for (const script of scripts) world.follow(script);
    await pass(MINUTE);
    expect(world.counts.reads).toBeLessThanOrEqual(1_000);
    expect(world.counts.versions).toBeLessThanOrEqual(7);
    Object.assign(world.counts, { versions: 0, reads: 0 });
    await pass(10 * MINUTE);
    expect(world.counts.reads).toBe(0);
    expect(world.counts.versions).toBeGreaterThanOrEqual(19);
    expect(world.counts.versions).toBeLessThanOrEqual(21);
  });

  it('of one session share its queries', async () => {
    const script = await commitWaiting(world);
    for (let nth = 0; nth < 1_000; nth++) world.follow(script);
    await pass(10 * MINUTE);
    expect(world.counts.reads).toBe(1);
    expect(world.counts.versions).toBeLessThanOrEqual(25);
  });

  it('get the frames of a lost message at the next poll, and the following ones within 1 s', async () => {
    const script = await commitWaiting(world);
    const delivered = world.follow(script);
    await pass(5 * MINUTE);
    const before = script.frames().length;
    await world.commit(script.sessionId, script.begin());
    await world.commit(script.sessionId, script.answer('the', ' end'));
    let waited = 0;
    for (; delivered.length === 0; waited++) await pass(1_000);
    expect(waited).toBeLessThanOrEqual(31);
    expect(delivered).toEqual(script.frames().slice(before));
    await world.commit(script.sessionId, script.complete());
    await pass(2_000);
    expect(delivered.at(-1)?.event).toBe('done');
  });

  it('get the text that NATS got before the subscription, though the model pauses behind it', async () => {
    world.feeds.close();
    let sent: Frame[] = [];
    let replays = 0;
    world = createWorld({
      ...deafBus,
      replay: async (_subject, _since, each) => {
        replays++;
        for (const frame of sent) each(JSON.stringify({ ...frame, epoch: 1 }));
      },
    });
    const script = createSessionScript();
    script.request();
    script.begin();
    await world.commit(script.sessionId, script.events);
    const delivered = world.follow(script);
    const known = script.frames().length;
    // The answer is not in the log: its attempt is still running.
    script.answer('one ', 'two');
    sent = script.frames().slice(known, known + 1);
    await pass(2_000);
    expect(delivered).toMatchObject(sent);
    await pass(10 * MINUTE);
    expect([delivered.length, replays]).toEqual([1, 1]);
  });

  it('are polled at the same intervals while the database is down', async () => {
    const script = await commitWaiting(world);
    const delivered = world.follow(script);
    world.setDown(true);
    await pass(10 * MINUTE);
    expect(world.counts.versions).toBeLessThanOrEqual(25);
    await world.commit(script.sessionId, [...script.cancel()]);
    world.setDown(false);
    await pass(31_000);
    expect(delivered.at(-1)?.event).toBe('done');
  });

  it('are not polled once they have left', async () => {
    const script = await commitWaiting(world);
    const leave = world.feeds.follow({
      ...{ workspace: 'default', sessionId: script.sessionId, turnId: randomUUID() },
      ...{ after: null, catchUp: false, deliver: () => undefined, onError: () => undefined },
    });
    leave();
    await pass(10 * MINUTE);
    expect(world.counts).toEqual({ versions: 0, reads: 0 });
  });
});
