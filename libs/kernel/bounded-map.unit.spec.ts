import { describe, expect, it } from '@jest/globals';
import { createBoundedMap } from './bounded-map.js';

describe('a bounded map', () => {
  it('evicts the entry that was written first', () => {
    const map = createBoundedMap<number>(2);
    map.put('a', 1);
    map.put('b', 2);
    map.put('a', 3);
    map.put('c', 4);
    expect(['a', 'b', 'c'].map(map.get)).toEqual([3, undefined, 4]);
  });

  it('deletes one entry, or all', () => {
    const map = createBoundedMap<number>(2);
    map.put('a', 1);
    map.put('b', 2);
    map.delete('a');
    expect(map.get('a')).toBeUndefined();
    map.clear();
    expect(map.get('b')).toBeUndefined();
  });
});
