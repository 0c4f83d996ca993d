import { describe, expect, it } from '@jest/globals';
import { HOSTILE_TIMEOUT_MS, findHolds, sampleHostileTexts } from '@antiphon/testing/hostile-text';
import type { LoopReader } from '@antiphon/testing/hostile-text';
import { createClientAddress } from './access/client-address.js';
import { parseFrame } from './sockets/rpc-protocol.js';

const MIB = 1024 * 1024;
const addressOf = createClientAddress(['10.0.0.0/8']);
const frame = (text: string) => parseFrame(text, Buffer.byteLength(text));

const READERS: readonly LoopReader[] = [
  { name: 'frame', longest: 4 * MIB, read: frame },
  {
    name: 'x-forwarded-for',
    longest: 64 * 1024,
    read: (text) => addressOf('10.0.0.1', { 'x-forwarded-for': text }),
  },
  { name: 'forwarded', longest: 64 * 1024, read: (text) => addressOf('10.0.0.1', { forwarded: text }) },
];

/** Items of which 1 MiB of JSON has as many values as it can. */
const DENSE = ['[]', '{}', '0', '""', '[[]]', '{"a":0}', 'null', '[0]', '"\\u0000"', '1e308'];
const dense = (item: string): string => {
  const [head, tail] = ['{"id":1,"method":"memory.query","params":{"a":[', `${item}]}}`];
  return head + `${item},`.repeat(Math.floor((MIB - head.length - tail.length) / (item.length + 1))) + tail;
};

describe('hostile text', () => {
  it('holds the event loop no longer than 50 ms as JSON of 1 MiB with as many values as it can have', () => {
    const texts = DENSE.map((item) => ({ text: dense(item), recipe: item }));
    expect(findHolds(READERS.slice(0, 1), texts)).toEqual([]);
    expect(frame(dense('[]'))).toMatchObject({ fault: { message: 'the frame has over 100000 values' } });
  });

  it(
    'holds the event loop of the gateway no longer than 50 ms',
    () => expect(findHolds(READERS, sampleHostileTexts(60))).toEqual([]),
    HOSTILE_TIMEOUT_MS,
  );
});
