import { describe, expect, it } from '@jest/globals';
import { HOSTILE_TIMEOUT_MS, findHolds, sampleHostileTexts } from '@antiphon/testing/hostile-text';
import type { LoopReader } from '@antiphon/testing/hostile-text';
import { searchFacts } from './context/assemble-context.js';
import { extractStatements } from './facts/extract-statements.js';
import { learnFacts } from './facts/learn-facts.js';
import { mergeDocuments } from './identity/merge-documents.js';
import { parseDocument } from './identity/parse-document.js';

const MIB = 1024 * 1024;
const KNOWN = Array.from({ length: 2_000 }, (_, n) => ({
  ...{ factId: `f${n}`, subject: 'user', predicate: `dog ${n}`, object: 'Rex', confidence: 1 },
  ...{ learnedAt: '2026-11-26T00:00:00.000Z', supersededAt: null, sourceEventId: 'e' },
})) as unknown as Parameters<typeof learnFacts>[0];

const READERS: readonly LoopReader[] = [
  { name: 'extractStatements', longest: 8 * MIB, read: extractStatements },
  {
    name: 'learnFacts',
    longest: 8 * MIB,
    read: (text) => learnFacts(KNOWN, { eventId: 'e', text, at: '' }, (_, n) => String(n)),
  },
  { name: 'searchFacts', longest: 8 * MIB, read: (text) => searchFacts(KNOWN, text) },
  {
    name: 'identity document',
    longest: 256 * 1024,
    read: (text) => mergeDocuments([parseDocument({ file: 'SOUL.md', text })]),
  },
];

describe('hostile text', () => {
  it(
    'holds the event loop of memory no longer than 50 ms',
    () => expect(findHolds(READERS, sampleHostileTexts(60))).toEqual([]),
    HOSTILE_TIMEOUT_MS,
  );
});
