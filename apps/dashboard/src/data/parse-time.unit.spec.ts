import { describe, expect, it } from '@jest/globals';
import { parseTime } from './parse-time.js';

const now = new Date('2026-11-27T12:00:00');
const local = (text: string): string => new Date(text).toISOString();

describe('a typed time', () => {
  it.each([
    ['2026-11-25 14:00', local('2026-11-25T14:00:00')],
    ['2026-11-25T14:00:30', local('2026-11-25T14:00:30')],
    ['2026-11-25 9:05', local('2026-11-25T09:05:00')],
    ['2026-11-25T14:00Z', '2026-11-25T14:00:00.000Z'],
    ['2026-11-25T14:00+05:30', '2026-11-25T08:30:00.000Z'],
    [' 2026-11-25 ', local('2026-11-25T23:59:59.999')],
    ['08:30', local('2026-11-27T08:30:59.999')],
  ])('%j is %s', (text, time) => {
    expect(parseTime(text, now)?.toISOString()).toBe(time);
  });

  it.each(['', 'yesterday', '25.11.2026', '2026-13-40', '25:00', '12', '2026-11-25 14:00 x'])(
    '%j is none',
    (text) => {
      expect(parseTime(text, now)).toBeNull();
    },
  );
});
