import { describe, expect, it } from '@jest/globals';
import { fromLocalTime, toLocalTime } from './local-time.js';

describe('a time of an input', () => {
  it('is the same time in the URL and back', () => {
    const value = '2026-11-22T10:15:42';
    expect(toLocalTime(fromLocalTime(value))).toBe(value);
    expect(fromLocalTime(value)).toMatch(/Z$/);
  });

  it.each(['', 'no time'])('is empty for the text "%s"', (text) => {
    expect([toLocalTime(text), fromLocalTime(text)]).toEqual(['', '']);
  });
});
