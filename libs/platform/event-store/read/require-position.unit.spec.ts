import { describe, expect, it } from '@jest/globals';
import { requireCursor, requirePosition } from './require-position.js';

const codeOf = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
};

describe('a required cursor', () => {
  it('is the decoded one, also zero', () => expect([requireCursor(0), requireCursor('x')]).toEqual([0, 'x']));

  it('is refused where the list did not issue it, with the code of the list', () => {
    expect(codeOf(() => requireCursor(undefined))).toBe('REQUEST.INVALID');
    expect(codeOf(() => requireCursor(undefined, 'CHAT.INVALID_CURSOR'))).toBe('CHAT.INVALID_CURSOR');
  });
});

describe('a required position', () => {
  it('is at most the head, which is the default', () => {
    expect([requirePosition(undefined, 9), requirePosition(9, 9)]).toEqual([9, 9]);
    expect(codeOf(() => requirePosition(10, 9))).toBe('LOG.POSITION_AHEAD');
  });
});
