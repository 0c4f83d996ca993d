import { describe, expect, it } from '@jest/globals';
import { HOSTILE_TIMEOUT_MS, findHolds, sampleHostileTexts } from '@antiphon/testing/hostile-text';
import type { LoopReader } from '@antiphon/testing/hostile-text';
import { parseHttpRequest, textCharset } from './egress.js';
import { parseDescription } from './plugin-description.js';
import { toToolOutcome } from './tool-outcome.js';
import { vetUrl } from './vet-url.js';

const MIB = 1024 * 1024;
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const HOSTS = new Set(['example.org']);

const READERS: readonly LoopReader[] = [
  {
    name: 'output of a tool',
    longest: MIB,
    read: (text) => toToolOutcome({ end: 'returned', error: null, status: 0, output: encode(text) }, MIB),
  },
  {
    name: 'description',
    longest: 64 * 1024,
    read: (text) => parseDescription(encode(text), () => ({}) as never),
  },
  { name: 'request', longest: MIB, read: parseHttpRequest },
  { name: 'address', longest: MIB, read: (text) => vetUrl(text, HOSTS) },
  { name: 'address with a path', longest: MIB, read: (text) => vetUrl(`https://example.org/${text}`, HOSTS) },
  { name: 'content type', longest: 64 * 1024, read: textCharset },
];

describe('hostile text', () => {
  it(
    'holds the event loop of the sandbox no longer than 50 ms',
    () => expect(findHolds(READERS, sampleHostileTexts(60))).toEqual([]),
    HOSTILE_TIMEOUT_MS,
  );
});
