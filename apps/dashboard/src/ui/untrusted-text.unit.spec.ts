import { describe, expect, it } from '@jest/globals';
import { splitHidden } from './hidden-characters.js';
import { splitBlocks } from './split-blocks.js';

describe('hidden characters of an untrusted text', () => {
  it.each([
    ['a bidirectional override', 'pay \u202Etxt.exe', 'U+202E'],
    ['a zero-width space', 'ad\u200Bmin', 'U+200B'],
    ['an ANSI escape', 'ok\u001B[31m', 'U+001B'],
    ['a tag character', 'a\u{E0041}', 'U+E0041'],
  ])('become visible: %s', (_, text, name) => {
    expect(splitHidden(text).find(({ isHidden }) => isHidden)?.text).toBe(name);
  });

  it('become visible in a text of many, with a bounded number of elements', () => {
    const parts = splitHidden('a\u202E'.repeat(50_000));
    expect(parts.length).toBeLessThan(2_100);
    expect(parts.map(({ text }) => text).join('')).not.toContain('\u202E');
    expect(parts.at(-1)?.text).toMatch(/a⟨U\+202E⟩$/);
  });

  it('leave other text alone', () => {
    expect(splitHidden('naïve 日本語 🎉\tline\nnext')).toEqual([
      { text: 'naïve 日本語 🎉\tline\nnext', isHidden: false },
    ]);
  });
});

describe('blocks of a growing answer', () => {
  it('end at blank lines, and only the last one grows', () => {
    const before = splitBlocks('# Title\n\nfirst\n\nsecond');
    expect(before).toEqual(['# Title', 'first', 'second']);
    expect(splitBlocks('# Title\n\nfirst\n\nsecond line').slice(0, 2)).toEqual(before.slice(0, 2));
  });

  it('keep code together, blank lines included', () => {
    expect(splitBlocks('```ts\na\n\nb\n```\n\nafter')).toEqual(['```ts\na\n\nb\n```', 'after']);
  });
});
