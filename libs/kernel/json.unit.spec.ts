import { describe, expect, it } from '@jest/globals';
import { findJsonExcess, nestsDeeperThan, toStorable, toStorableJson } from '@antiphon/kernel';
import type { JsonObject, JsonValue } from '@antiphon/kernel';

describe('nestsDeeperThan', () => {
  it('accepts the limit and rejects one level more', () => {
    expect(nestsDeeperThan('['.repeat(64) + ']'.repeat(64), 64)).toBe(false);
    expect(nestsDeeperThan('['.repeat(65) + ']'.repeat(65), 64)).toBe(true);
  });

  it('reads 100,000 levels without a stack overflow', () =>
    expect(nestsDeeperThan('{"a":'.repeat(100_000), 64)).toBe(true));

  it('ignores brackets within strings, and escaped quotes', () =>
    expect(nestsDeeperThan(JSON.stringify({ a: '['.repeat(100) + '\\"[[' }), 1)).toBe(false));
});

describe('findJsonExcess', () => {
  it('counts values of arrays and objects, and not those within strings', () => {
    expect(findJsonExcess('[1,2,[]]', { values: 5 })).toBeNull();
    expect(findJsonExcess('[1,2,[]]', { values: 4 })).toBe('has over 4 values');
    expect(findJsonExcess('{"a":{},"b":2}', { values: 3 })).toBe('has over 3 values');
    expect(findJsonExcess(JSON.stringify([',[{'.repeat(1_000)]), { values: 3 })).toBeNull();
  });

  it('names the first bound that a text exceeds', () => {
    expect(findJsonExcess('['.repeat(65))).toBe('nests deeper than 64 levels');
    expect(findJsonExcess('[],'.repeat(60_000))).toBe('has over 100000 values');
    expect(findJsonExcess(`[${'1,'.repeat(90_000)}1]`)).toBeNull();
  });
});

describe('toStorable', () => {
  it('replaces the characters that jsonb refuses', () =>
    expect(toStorable('a\0b\ud800c')).toBe('a\uFFFDb\uFFFDc'));

  it('replaces them in nested strings and keys', () =>
    expect(toStorableJson({ 'k\0': ['\udfff', 1, null] })).toEqual({ 'k\uFFFD': ['\uFFFD', 1, null] }));

  it('returns a storable value as it is, without the copy of a million small values', () => {
    const value: JsonValue = { a: [[], {}, { b: ['c', 1, null] }] };
    expect(toStorableJson(value)).toBe(value);
    const lone: JsonObject = { a: [['ok'], ['\udfff']], b: value };
    const clean = toStorableJson(lone) as JsonObject;
    expect(clean).toEqual({ a: [['ok'], ['\uFFFD']], b: value });
    expect(clean['b']).toBe(value);
    expect(lone['a']).toEqual([['ok'], ['\udfff']]);
  });
});
