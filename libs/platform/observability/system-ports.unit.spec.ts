import { describe, expect, it } from '@jest/globals';
import { uuidIds } from './system-ports.js';

const V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('ids', () => {
  const from = Date.now();
  const ids = Array.from({ length: 20_000 }, () => uuidIds.next());

  it('are unique UUIDs of version 7, in the order of their creation', () => {
    expect(ids.every((id) => V7.test(id))).toBe(true);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.toSorted()).toEqual(ids);
  });

  it('contain their creation time', () => {
    const times = ids.map((id) => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16));
    expect(Math.min(...times)).toBeGreaterThanOrEqual(from);
    expect(Math.max(...times)).toBeLessThanOrEqual(Date.now());
  });

  it('do not share their random part', () => {
    const tails = new Set(ids.map((id) => id.slice(-8)));
    expect(tails.size).toBeGreaterThan(ids.length - 10);
  });
});
