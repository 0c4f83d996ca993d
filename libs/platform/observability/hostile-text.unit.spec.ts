import { describe, expect, it } from '@jest/globals';
import { HOSTILE_TIMEOUT_MS, findHolds, sampleHostileTexts } from '@antiphon/testing/hostile-text';
import { redactValue } from './redact.js';

describe('hostile text', () => {
  it(
    'holds the event loop no longer than 50 ms in a log line',
    () => {
      const reader = { name: 'redactValue', longest: 8 * 1024 * 1024, read: redactValue };
      expect(findHolds([reader], sampleHostileTexts(60))).toEqual([]);
    },
    HOSTILE_TIMEOUT_MS,
  );
});
