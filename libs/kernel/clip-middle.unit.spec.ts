import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { clipMiddle } from './clip-middle.js';

describe('clipMiddle', () => {
  it('keeps the beginning and the end of a text, with a note between them', () => {
    expect(clipMiddle('a'.repeat(50) + 'b'.repeat(50), 33, '[…]')).toBe(
      `${'a'.repeat(18)}[…]${'b'.repeat(10)}`,
    );
    expect(clipMiddle('short', 5, '[…]')).toBe('short');
  });

  it('stays within its bytes, and splits no character', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(60), (text, bytes) => {
        const clipped = clipMiddle(text, bytes, '|');
        expect(Buffer.byteLength(clipped)).toBeLessThanOrEqual(Math.max(1, bytes));
        expect(clipped.isWellFormed()).toBe(true);
        const [head = '', tail = ''] = clipped === text ? [text] : clipped.split('|');
        if (!text.includes('|')) expect(text.startsWith(head) && text.endsWith(tail)).toBe(true);
      }),
    );
  });
});
