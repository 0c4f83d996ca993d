import { describe, expect, it } from '@jest/globals';
import { createMemoryEventStore } from '@antiphon/event-store/testing';
import { newEvent } from '@antiphon/testing';
import { exportText, verifySession } from './export-session.js';

const SESSION = '01998f3e-6c1a-7b52-9d0e-5a4c3b2a1f00';

describe('the export of a session', () => {
  const setUp = async () => {
    const store = createMemoryEventStore();
    const append = (streamId: string) =>
      store.append({
        workspace: 'default',
        streams: [{ streamId, expectedVersion: 'any', events: [newEvent({ streamId })] }],
      });
    await append('agent-main');
    for (let count = 0; count < 3; count++) await append(`session-${SESSION}`);
    return store;
  };

  it('ends at a position of the log, with the bytes of that version', async () => {
    const store = await setUp();
    const textAt = async (at?: number): Promise<string> => {
      const header = await verifySession(store, 'default', SESSION, at);
      const pieces: string[] = [];
      for await (const piece of exportText(store, header, 'jsonl')) pieces.push(piece);
      return pieces.join('');
    };
    const [whole, then] = [await textAt(), await textAt(3)];
    expect([whole.trim().split('\n').length, then.trim().split('\n').length]).toEqual([4, 3]);
    expect(JSON.parse(then.split('\n')[0] ?? '')).toMatchObject({ head: { version: 2 } });
    // The events are those of the whole export.
    expect(whole.split('\n').slice(1, 3)).toEqual(then.split('\n').slice(1, 3));
    expect(await textAt(4)).toBe(whole);
  });

  it('is unknown before the first event of the session', async () => {
    const store = await setUp();
    await expect(verifySession(store, 'default', SESSION, 1)).rejects.toMatchObject({
      code: 'GATEWAY.SESSION_NOT_FOUND',
    });
  });
});
