import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { decodeCursor, encodeCursor } from './cursor.js';

describe('a cursor', () => {
  it('is read as the position that it was made of', () =>
    fc.assert(
      fc.property(fc.nat({ max: 999_999_999_999_999 }), (position) =>
        expect(decodeCursor(encodeCursor(position))).toBe(position),
      ),
    ));

  it('that nobody gave out is none', () =>
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(decodeCursor(Buffer.from(`q${text}`).toString('base64url'))).toBeUndefined();
      }),
    ));
});
