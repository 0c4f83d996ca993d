import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  framesOf,
  initialCursor,
  liveSubject,
  sessionStream,
  turnEndSubject,
  type Frame,
  type SessionEvent,
} from '@antiphon/contracts/agent';
import { type EventStore } from '@antiphon/event-store';
import { createMemoryEventStore } from '@antiphon/event-store/testing';
import type { JsonObject } from '@antiphon/kernel';
import { connectNats, type NatsLink } from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import { until } from '@antiphon/testing';
import { FrameLog } from './frame-log.js';
import { createNatsFrameBus } from './nats-frame-bus.js';
import { SessionFeeds } from './session-feeds.js';

const WORKSPACE = `feeds-${randomUUID().slice(0, 8)}`;
const at = '2026-11-21T00:00:00.000Z';

let nats: NatsLink;
let store: EventStore;
let feeds: SessionFeeds;

beforeAll(async () => {
  nats = await connectNats({
    url: process.env['ANTIPHON_TEST_NATS_URL'] ?? '',
    service: 'gateway',
    logger: silentLogger,
  });
  store = createMemoryEventStore();
  const bus = createNatsFrameBus(nats);
  // The suite's NATS server has no LIVE stream. The spec of the reader tests the replay.
  const withoutLive = { ...bus, recall: () => Promise.resolve() };
  feeds = new SessionFeeds(withoutLive, new FrameLog(store), () => Date.now());
});
afterAll(async () => {
  feeds.close();
  await nats.drain();
});

const turnOf = (sessionId: string, turnId: string): SessionEvent[] => {
  const call = { turnId, attempt: 1, step: 1, provider: 'p', model: 'm', reservationId: randomUUID() };
  const answer = {
    text: 'Hello',
    thought: '',
    frames: [{ kind: 'text' as const, length: 5 }],
    toolCalls: [],
  };
  const usage = { inputTokens: 1, outputTokens: 1, estimated: false };
  return [
    {
      type: 'SessionStarted',
      schemaVersion: 1,
      data: { sessionId, sessionKey: 'k', agentId: 'main', startedAt: at },
    },
    { type: 'TurnRequested', schemaVersion: 1, data: { turnId, content: 'hi', requestedAt: at } },
    { type: 'ModelCallStarted', schemaVersion: 1, data: { ...call, tryNumber: 1, startedAt: at } },
    {
      type: 'ModelCallCompleted',
      schemaVersion: 1,
      data: { ...call, ...answer, finishReason: 'stop', usage, costMicroUsd: null, completedAt: at },
    },
    { type: 'TurnCompleted', schemaVersion: 1, data: { turnId, completedAt: at } },
  ];
};

const framesFor = (events: readonly SessionEvent[]): Frame[] => {
  let cursor = initialCursor;
  return events.flatMap((event) => {
    const step = framesOf(cursor, event);
    cursor = step.cursor;
    return [...step.frames];
  });
};

const commit = (sessionId: string, events: readonly SessionEvent[]) =>
  store.append({
    workspace: WORKSPACE,
    streams: [
      {
        streamId: sessionStream(sessionId),
        expectedVersion: 'any',
        events: events.map((event) => ({
          eventId: randomUUID(),
          type: event.type,
          schemaVersion: event.schemaVersion,
          data: event.data as unknown as JsonObject,
          metadata: { correlationId: 'c', service: 'agent' },
        })),
      },
    ],
  });

const begin = () => {
  const sessionId = randomUUID();
  const turnId = randomUUID();
  const events = turnOf(sessionId, turnId);
  return { sessionId, turnId, events, frames: framesFor(events) };
};

/** Follows one turn and settles with its offsets once `done` was delivered. */
const followTurn = (sessionId: string, turnId: string, after: number | null): Promise<number[]> =>
  new Promise((resolve, reject) => {
    const offsets: number[] = [];
    const leave = feeds.follow({
      workspace: WORKSPACE,
      sessionId,
      turnId,
      after,
      catchUp: false,
      deliver: ({ offset, event }) => {
        offsets.push(offset);
        if (event === 'done') {
          leave();
          resolve(offsets);
        }
      },
      onError: reject,
    });
  });

const publish = (sessionId: string, frames: readonly Frame[], epoch = 1) =>
  frames.forEach((frame) =>
    nats.connection.publish(liveSubject(WORKSPACE, sessionId), JSON.stringify({ ...frame, epoch })),
  );

describe('SessionFeeds over NATS', () => {
  it('delivers live frames as they come', async () => {
    const { sessionId, turnId, frames } = begin();
    const followed = followTurn(sessionId, turnId, 0);
    publish(sessionId, frames);
    expect(await followed).toEqual(frames.map(({ offset }) => offset));
  });

  it('reads the end of a turn from the log when its end is relayed, if the driver crashed before sending it', async () => {
    const { sessionId, turnId, events, frames } = begin();
    const followed = followTurn(sessionId, turnId, 0);
    publish(sessionId, frames.slice(0, 2));
    await commit(sessionId, events);
    nats.connection.publish(turnEndSubject(WORKSPACE, sessionId), turnId);
    expect(await followed).toEqual(frames.map(({ offset }) => offset));
  });

  it('reads the end of a turn from the log by polling when no end is relayed', async () => {
    const { sessionId, turnId, events, frames } = begin();
    const followed = followTurn(sessionId, turnId, 0);
    await commit(sessionId, events);
    expect(await followed).toEqual(frames.map(({ offset }) => offset));
  });

  it('delivers the same frames to two followers of a session, each from its own offset', async () => {
    const { sessionId, turnId, frames } = begin();
    const [first, second] = [
      followTurn(sessionId, turnId, 0),
      followTurn(sessionId, turnId, frames[1]?.offset ?? 0),
    ];
    publish(sessionId, frames);
    expect(await first).toEqual(frames.map(({ offset }) => offset));
    expect(await second).toEqual(frames.slice(2).map(({ offset }) => offset));
  });

  it('drops frames of a driver that lost the session, also for readers that come later', async () => {
    const { sessionId, turnId, frames } = begin();
    const stale = frames.slice(1, 2).map((frame) => ({ ...frame, data: 'stale' }));
    const seen: unknown[] = [];
    const watch = (after: number) =>
      feeds.follow({
        workspace: WORKSPACE,
        sessionId,
        turnId,
        after,
        catchUp: false,
        deliver: ({ data }) => seen.push(data),
        onError: (error) => seen.push(error),
      });
    const early = followTurn(sessionId, turnId, 0);
    watch(0);
    publish(sessionId, frames.slice(0, 1), 2);
    await until(() => seen.length === 1);
    watch(frames[0]?.offset ?? 0);
    publish(sessionId, stale, 1);
    publish(sessionId, frames.slice(1), 2);
    await early;
    await until(() => seen.length === 2 * frames.length - 1);
    expect(seen).not.toContain('stale');
  });

  it('ignores messages that are not frames', async () => {
    const { sessionId, turnId, frames } = begin();
    const followed = followTurn(sessionId, turnId, 0);
    for (const junk of ['', 'not json', '{}', '[]', '{"event":"done"}'])
      nats.connection.publish(liveSubject(WORKSPACE, sessionId), junk);
    publish(sessionId, frames);
    expect(await followed).toEqual(frames.map(({ offset }) => offset));
  });
});
