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

describe('hostile text', () => {
  it(
    'holds the event loop of the gateway no longer than 50 ms',
    () => expect(findHolds(READERS, sampleHostileTexts(60))).toEqual([]),
    HOSTILE_TIMEOUT_MS,
  );
});
