import { describe, expect, it } from '@jest/globals';
import { HOSTILE_TIMEOUT_MS, findHolds, sampleHostileTexts } from '@antiphon/testing/hostile-text';
import type { LoopReader } from '@antiphon/testing/hostile-text';
import { renderFacts } from './context/build-prompt.js';
import { foldCase, isVirtualPath } from '@antiphon/files-domain/file-path';
import { promisesHandOver } from './session/promised-hand-over.js';
import { referencesIn } from '@antiphon/contracts/prompt-references';
import { renderPrompt } from '@antiphon/orchestration-domain/workflow/prompt-template';

const MIB = 1024 * 1024;
const values = { input: () => 'x', output: () => undefined };

const READERS: readonly LoopReader[] = [
  { name: 'promisesHandOver', longest: 8 * MIB, read: promisesHandOver },
  { name: 'referencesIn', longest: 256 * 1024, read: referencesIn },
  { name: 'renderPrompt', longest: 256 * 1024, read: (text) => renderPrompt(text, values) },
  {
    name: 'renderFacts',
    longest: 64 * 1024,
    read: (text) => renderFacts([{ subject: text, predicate: text, object: text }]),
  },
  { name: 'foldCase', longest: 4_096, read: foldCase },
  { name: 'isVirtualPath', longest: 4_096, read: isVirtualPath },
];

describe('hostile text', () => {
  it(
    'holds the event loop of the agent no longer than 50 ms',
    () => expect(findHolds(READERS, sampleHostileTexts(60))).toEqual([]),
    HOSTILE_TIMEOUT_MS,
  );
});
