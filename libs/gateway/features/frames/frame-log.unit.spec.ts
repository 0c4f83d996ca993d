import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { sessionStream } from '@antiphon/contracts/agent';
import type { Frame } from '@antiphon/contracts/agent';
import { createMemoryEventStore } from '@antiphon/event-store/testing';
import type { JsonObject } from '@antiphon/kernel';
import { createSessionScript } from '../testing/session-script.js';
import { FrameLog } from './frame-log.js';

const PAGE_EVENTS = 64;

/** A session of 30 turns, whose reads are counted. */
const startWorld = async () => {
  const store = createMemoryEventStore();
  const script = createSessionScript();
  const counts = { stored: 0, reads: 0, events: 0 };
  const appendTurns = async (turns: number): Promise<void> => {
    for (let turn = 0; turn < turns; turn++) script.turn('one ', 'two');
    const events = script.events.slice(counts.stored).map(({ type, schemaVersion, data }) => ({
      ...{ eventId: randomUUID(), type, schemaVersion, data: data as unknown as JsonObject },
      metadata: { correlationId: 'spec', service: 'agent' },
    }));
    const stream = { streamId: sessionStream(script.sessionId), expectedVersion: counts.stored, events };
    await store.append({ workspace: 'default', streams: [stream] });
    counts.stored = script.events.length;
  };
  await appendTurns(30);
  const held = { until: Promise.resolve() };
  const log = new FrameLog({
    readStreamPage: async (...args) => {
      const page = await store.readStreamPage(...args);
      // One event is read to check that the session is not archived.
      if (args[2]?.limit === 1) return page;
      counts.reads++;
      await held.until;
      counts.events += page.events.length;
      return page;
    },
    streamVersion: (...args) => store.streamVersion(...args),
  });
  const readAll = async (): Promise<Frame[]> => {
    const frames: Frame[] = [];
    for await (const page of log.framesAfter('default', script.sessionId, 0)) frames.push(...page.frames);
    return frames;
  };
  return { script, counts, held, appendTurns, readAll };
};

describe('readers that catch up', () => {
  it('share each read of the log and its frames, if they come at once', async () => {
    const { script, counts, readAll } = await startWorld();
    const [first = [], ...others] = await Promise.all(Array.from({ length: 100 }, readAll));
    const expected = script.frames();
    expect(first).toEqual(expected.map((frame) => expect.objectContaining({ ...frame })));
    for (const frames of others) {
      expect(frames).toHaveLength(first.length);
      expect(frames.every((frame, at) => frame === first[at])).toBe(true);
    }
    expect(counts.reads).toBe(Math.ceil(script.events.length / PAGE_EVENTS));
  });

  // @shows chats-C5
  it('share the frames, if one comes after the other, and read only the end again', async () => {
    const { script, counts, readAll } = await startWorld();
    const first = await readAll();
    for (let reader = 0; reader < 100; reader++) {
      const frames = await readAll();
      expect(frames).toHaveLength(first.length);
      expect(frames.every((frame, at) => frame === first[at])).toBe(true);
    }
    expect(counts.events).toBe(script.events.length);
  });

  it('get what was appended after the others had read', async () => {
    const { script, counts, appendTurns, readAll } = await startWorld();
    await readAll();
    await appendTurns(30);
    expect(await readAll()).toEqual(script.frames().map((frame) => expect.objectContaining({ ...frame })));
    expect(counts.events).toBe(script.events.length);
  });

  it('do not share a read that began before a commit, if they come after it', async () => {
    const { script, counts, held, appendTurns, readAll } = await startWorld();
    await readAll();
    const released = Promise.withResolvers<void>();
    held.until = released.promise;
    const early = readAll();
    const readsBefore = counts.reads;
    while (counts.reads === readsBefore) await new Promise(setImmediate);
    const committed = script.frames().length;
    await appendTurns(1);
    const late = [readAll(), readAll()];
    released.resolve();
    expect(await early).toHaveLength(committed);
    for (const frames of await Promise.all(late)) expect(frames).toHaveLength(script.frames().length);
  });
});
