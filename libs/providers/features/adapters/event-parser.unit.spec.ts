import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createEventParser } from '../transport/response-reader.js';
import type { ServerEvent } from '../transport/response-reader.js';

const read = (chunks: readonly Uint8Array[]): ServerEvent[] => {
  const events: ServerEvent[] = [];
  const parse = createEventParser(({ event, data }) => void events.push({ event, data }));
  for (const chunk of chunks) parse(chunk);
  return events;
};

const cut = (bytes: Buffer, places: readonly number[]): Buffer[] => {
  const ends = [...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
};

describe('createEventParser', () => {
  it('returns the same events for every line ending and every way to cut the stream', () =>
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
            { event: undefined, data: '' },
            { event: undefined, data: 'two' },
          ]);
        },
      ),
    ));

  it('drops an event that the stream breaks off', () => {
    expect(read([Buffer.from('data: one\n\ndata: tw')])).toEqual([{ event: undefined, data: 'one' }]);
    expect(read([Buffer.from('data: one\n')])).toEqual([]);
  });

  it('takes time in proportion to the length of the stream, also for many small pieces', () => {
    const pieces = Array.from({ length: 200_000 }, () => Buffer.from('a line without an end '));
    expect(read([Buffer.from('data: '), ...pieces, Buffer.from('\n\n')])[0]?.data).toHaveLength(4_400_000);
  });
});
