import { describe, expect, it } from '@jest/globals';
import { processorMs } from '@antiphon/testing';
import { HOSTILE_TIMEOUT_MS, findHolds, sampleHostileTexts } from '@antiphon/testing/hostile-text';
import type { LoopReader } from '@antiphon/testing/hostile-text';
import { createClientAddress } from './access/client-address.js';
import { parseFrame } from './sockets/rpc-protocol.js';

const MIB = 1024 * 1024;
const addressOf = createClientAddress(['10.0.0.0/8']);
const frame = (text: string) => parseFrame(text, Buffer.byteLength(text));
/** Texts of frames that are JSON, made of one piece. */
const JSON_PIECES = ['{"a":1}', '[]', '{}', '1e5', '[[[[[[[[]]]]]]]]', '{"a":{"b":{"c":[]}}}'];
const frames = JSON_PIECES.flatMap((piece) => {
  const items = `${`${piece},`.repeat(Math.floor((MIB - 200) / (piece.length + 1)))}${piece}`;
  return [`[${items}]`, `{"id":1,"method":"ping","params":{"a":[${items}]}}`];
});

const READERS: readonly LoopReader[] = [
  { name: 'frame', longest: 4 * MIB, read: frame },
  {
    name: 'x-forwarded-for',
    longest: 64 * 1024,
    read: (text) => addressOf('10.0.0.1', { 'x-forwarded-for': text }),
  },
  { name: 'forwarded', longest: 64 * 1024, read: (text) => addressOf('10.0.0.1', { forwarded: text }) },
];

describe('hostile text', () => {
  it(
    'holds the event loop of the gateway no longer than 50 ms',
    () => expect(findHolds(READERS, sampleHostileTexts(60))).toEqual([]),
    HOSTILE_TIMEOUT_MS,
  );

  it('holds it as JSON of many small values little longer than its JSON parser does', () => {
    const best = (run: () => unknown) => Math.min(...[1, 2, 3, 4, 5].map(() => processorMs(run)));
    for (const text of frames) {
      const parser = best(() => JSON.parse(text) as unknown);
      expect(best(() => frame(text))).toBeLessThanOrEqual(3 * parser + 40);
    }
  });
});
