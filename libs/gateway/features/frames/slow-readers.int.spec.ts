import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, startNatsServer } from '@antiphon/testing';
import type { TestNatsServer } from '@antiphon/testing';
import { assembleFrames, connectClient, followSession } from '@antiphon/testing/client';
import type { FrameStream, SocketClient } from '@antiphon/testing/client';
import { createResumeWorld } from '../testing/resume-world.js';
import type { ResumeGateway, ResumeWorld } from '../testing/resume-world.js';
import { createSessionScript } from '../testing/session-script.js';
import type { SessionScript } from '../testing/session-script.js';

const LIMITS = { socketBytes: 512 * 1024, totalBytes: 1024 * 1024 };
const SLOW = 4;
/**
 * Size that exceeds the kernel buffers of a connection, some 10 MB on loopback.
 */
const TURNS = 24;
const PIECES = Array.from({ length: 20 }, (_, n) => `${n} `.padEnd(32 * 1024, 'x'));

let server: TestNatsServer;
let world: ResumeWorld;
let gateway: ResumeGateway;
let script: SessionScript;
let slow: SocketClient[];
let begun: FrameStream[];
let closes: Promise<{ code: number; reason: string }>[];
let brisk: SocketClient;
let read: FrameStream;
const held: number[] = [];

const follow = (client: SocketClient): FrameStream =>
  client.stream('session.resume', { sessionId: script.sessionId, after: 0 });

/** Sends and commits a turn as its driver does, once the fast client has the turn before. */
const stream = async (): Promise<void> => {
  const before = script.frames().at(-1)?.offset ?? 0;
  await world.commit(script.sessionId, script.turn(...PIECES));
  const frames = script.frames().filter(({ offset }) => offset > before);
  await world.send(script.sessionId, frames);
  held.push(gateway.heldBytes());
  await read.waitFor('the end of a turn', ({ offset }) => offset === frames.at(-1)?.offset);
  held.push(gateway.heldBytes());
};

beforeAll(async () => {
  server = await startNatsServer();
  world = await createResumeWorld(await createTestDatabase(), server.url);
  gateway = await world.startGateway(LIMITS);
  script = createSessionScript();
  await world.commit(script.sessionId, [...script.events, ...script.turn('begin')]);
  brisk = await connectClient(gateway.wsUrl);
  slow = await Promise.all(Array.from({ length: SLOW }, () => connectClient(gateway.wsUrl)));
  read = follow(brisk);
  begun = slow.map(follow);
  await Promise.all(begun.map((frames) => frames.done()));
  // A paused socket closes at once where its connection is reset.
  closes = slow.map(
    ({ socket }) =>
      new Promise((resolve) =>
        socket.once('close', (code, reason) => resolve({ code, reason: reason.toString('utf8') })),
      ),
  );
  for (const { socket } of slow) socket.pause();
});
afterAll(async () => {
  await Promise.all([brisk, ...(slow ?? [])].map((client) => client?.close()));
  await world?.close();
  await server?.remove();
});

describe('a client that does not read', () => {
  it('holds no more than its limit, and a client that reads misses nothing', async () => {
    for (let turn = 0; turn < TURNS; turn++) await stream();
    const all = assembleFrames(script.frames());
    expect(assembleFrames(read.frames) === all).toBe(true);
    expect(Math.max(...held)).toBeGreaterThan(0);
    // The limit is checked before a frame is added.
    expect(Math.max(...held)).toBeLessThanOrEqual(LIMITS.totalBytes + SLOW * 64 * 1024);
  });

  it('is closed with 1013 and the offset to resume from, and then gets every byte', async () => {
    for (const { socket } of slow) socket.resume();
    const ends = await Promise.all(closes);
    const other = await world.startGateway();
    for (const [index, { code, reason }] of ends.entries()) {
      const had = begun[index]?.frames ?? [];
      const last = had.at(-1)?.offset ?? 0;
      expect([code, reason]).toEqual([1013, `too slow: resume session ${script.sessionId} after ${last}`]);
      const rest = followSession({
        sessionId: script.sessionId,
        nextUrl: () => other.wsUrl,
        nextCut: () => null,
        after: last,
      });
      await rest.waitForOffset(script.frames().at(-1)?.offset ?? 0);
      await rest.stop();
      expect(rest.frames.length).toBeGreaterThan(0);
      expect(assembleFrames([...had, ...rest.frames]) === assembleFrames(script.frames())).toBe(true);
    }
    expect(gateway.heldBytes()).toBe(0);
  });
});
