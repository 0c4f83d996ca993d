import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { decodeCursor, encodeCursor, epochOfCursor } from './cursor.js';

describe('a cursor', () => {
  it('decodes to the position that it was made of', () =>
    fc.assert(
      fc.property(fc.nat({ max: 999_999_999_999_999 }), (position) =>
        expect(decodeCursor(encodeCursor(position))).toBe(position),
      ),
    ));

  it('contains the epoch that it was made with', () => {
    expect(decodeCursor(encodeCursor(12, 3))).toBe(12);
    expect(epochOfCursor(encodeCursor(12, 3))).toBe(3);
    expect(epochOfCursor(encodeCursor(12))).toBeUndefined();
    expect(epochOfCursor('nonsense')).toBeUndefined();
  });

  it('is rejected if it was not issued by the log', () =>
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(decodeCursor(Buffer.from(`q${text}`).toString('base64url'))).toBeUndefined();
      }),
    ));
});
