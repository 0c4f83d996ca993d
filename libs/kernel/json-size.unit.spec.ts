import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { clipToJsonBytes, cutToJsonBytes, jsonBytes } from './json-size.js';

const anyText = fc.string({ unit: 'binary', maxLength: 60 });

describe('a text that is cut to a size of JSON', () => {
  it('takes that size at most, and one character more would not', () =>
    fc.assert(
      fc.property(anyText, fc.nat(120), (text, max) => {
        const cut = cutToJsonBytes(text, max);
        expect(text.startsWith(cut)).toBe(true);
        expect(jsonBytes(cut)).toBeLessThanOrEqual(max);
        if (cut === text) return;
        const [next = ''] = text.slice(cut.length);
        expect(jsonBytes(cut + next)).toBeGreaterThan(max);
      }),
    ));

  it('stays whole where it fits', () => {
    const text = '"\\\u0001\n字😀\ud800';
    expect(jsonBytes(text)).toBe(2 + 2 + 6 + 2 + 3 + 4 + 6);
    expect(cutToJsonBytes(text, jsonBytes(text))).toBe(text);
    expect(clipToJsonBytes(text, jsonBytes(text))).toBe(text);
  });

  it('keeps a surrogate pair whole', () => expect(cutToJsonBytes('a😀', 4)).toBe('a'));
});

it('clips a text whose large characters come first to its limit and a note', () => {
  const text = '\u0001'.repeat(1_000) + 'x'.repeat(10_000);
  const clipped = clipToJsonBytes(text, 3_000);
  expect(clipped).toBe(`${'\u0001'.repeat(500)}… [clipped: 500 of 11000 characters]`);
});
