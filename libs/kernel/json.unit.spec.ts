import { describe, expect, it } from '@jest/globals';
import { nestsDeeperThan, toStorable, toStorableJson } from '@antiphon/kernel';

describe('nestsDeeperThan', () => {
  it('accepts the limit and refuses one level more', () => {
    expect(nestsDeeperThan('['.repeat(64) + ']'.repeat(64), 64)).toBe(false);
    expect(nestsDeeperThan('['.repeat(65) + ']'.repeat(65), 64)).toBe(true);
  });

  it('survives 100,000 levels', () => expect(nestsDeeperThan('{"a":'.repeat(100_000), 64)).toBe(true));

  it('does not count brackets within strings, nor escaped quotes', () =>
    expect(nestsDeeperThan(JSON.stringify({ a: '['.repeat(100) + '\\"[[' }), 1)).toBe(false));
});

describe('toStorable', () => {
  it('replaces what jsonb refuses', () => expect(toStorable('a\0b\ud800c')).toBe('a\uFFFDb\uFFFDc'));

  it('reaches nested strings and keys', () =>
    expect(toStorableJson({ 'k\0': ['\udfff', 1, null] })).toEqual({ 'k\uFFFD': ['\uFFFD', 1, null] }));
});
