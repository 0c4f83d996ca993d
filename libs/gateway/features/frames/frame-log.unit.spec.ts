import { randomUUID } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { sessionStream } from '@antiphon/contracts/agent';
import type { Frame } from '@antiphon/contracts/agent';
import { createMemoryEventStore } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';
import { createSessionScript } from '../testing/session-script.js';
import { FrameLog } from './frame-log.js';

it('readers that catch up at once share each read of the log and its frames', async () => {
  const store = createMemoryEventStore();
  const script = createSessionScript();
  for (let turn = 0; turn < 30; turn++) script.turn('one ', 'two');
  await store.append({
    workspace: 'default',
    streams: [
      {
        streamId: sessionStream(script.sessionId),
        expectedVersion: 0,
        events: script.events.map(({ type, schemaVersion, data }) => ({
          ...{ eventId: randomUUID(), type, schemaVersion, data: data as unknown as JsonObject },
          metadata: { correlationId: 'spec', service: 'agent' },
        })),
      },
    ],
  });
  let reads = 0;
  const log = new FrameLog({
    readStreamPage: (...args) => (reads++, store.readStreamPage(...args)),
    streamVersion: (...args) => store.streamVersion(...args),
  });
  const readAll = async (): Promise<Frame[]> => {
    const frames: Frame[] = [];
    for await (const page of log.framesAfter('default', script.sessionId, 0)) frames.push(...page.frames);
    return frames;
  };
  const [first = [], ...others] = await Promise.all(Array.from({ length: 100 }, readAll));
  const expected = script.frames();
  expect(first).toEqual(expected.map((frame) => expect.objectContaining({ ...frame })));
  for (const frames of others) expect(frames.every((frame, at) => frame === first[at])).toBe(true);
  expect(reads).toBe(Math.ceil(script.events.length / 64));
  expect(await readAll()).toEqual(first);
  expect(reads).toBeGreaterThan(Math.ceil(script.events.length / 64));
});
