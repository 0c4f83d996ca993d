import { describe, expect, it } from '@jest/globals';
import { startOfDayBefore } from './day-before.js';

describe('the day before a time', () => {
  it('begins 24 hours before it, at a whole minute', () => {
    expect(startOfDayBefore('2026-11-22T10:15:42.123Z')).toBe('2026-11-21T10:15:00.000Z');
  });

  it('is unknown without a time', () => expect(startOfDayBefore(undefined)).toBeNull());
});
