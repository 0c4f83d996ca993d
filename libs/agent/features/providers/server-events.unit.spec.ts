import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createServerEvents } from './transport/server-events.js';
import type { ServerEvent } from './transport/server-events.js';

const read = (chunks: readonly Uint8Array[]): ServerEvent[] => {
  const events: ServerEvent[] = [];
  const reader = createServerEvents((event) => void events.push(event));
  for (const chunk of chunks) reader.take(chunk);
  return events;
};

const cut = (bytes: Buffer, places: readonly number[]): Buffer[] => {
  const ends = [...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
};

describe('server-sent events', () => {
  it('are the same for every end of line and every way of cutting the stream', () =>
    fc.assert(
      fc.property(
        fc.constantFrom('\n', '\r\n', '\r'),
        fc.array(fc.nat(), { maxLength: 12 }),
        (eol, places) => {
          const lines = ['\uFEFF: a comment', 'event: one', 'data:Grüße 🎉', 'data: \tto you', 'id: 7', ''];
          const bytes = Buffer.from(
            [...lines, 'data', '', '', 'event: nothing', '', 'data: two', '', ''].join(eol),
          );
          expect(read(cut(bytes, places))).toEqual([
            { event: 'one', data: 'Grüße 🎉\n\tto you' },
            { event: null, data: '' },
            { event: null, data: 'two' },
          ]);
        },
      ),
    ));

  it('are none where the stream breaks off', () => {
    expect(read([Buffer.from('data: one\n\ndata: tw')])).toEqual([{ event: null, data: 'one' }]);
    expect(read([Buffer.from('data: one\n')])).toEqual([]);
  });

  it('take time in proportion to their length, however small the pieces are', () => {
    const pieces = Array.from({ length: 200_000 }, () => Buffer.from('a line without an end '));
    expect(read([Buffer.from('data: '), ...pieces, Buffer.from('\n\n')])[0]?.data).toHaveLength(4_400_000);
  });
});
