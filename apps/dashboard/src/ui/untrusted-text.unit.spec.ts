import { describe, expect, it } from '@jest/globals';
import { splitHidden } from './hidden-characters.js';
import fc from 'fast-check';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { gfmFromMarkdown } from 'mdast-util-gfm';
import { gfm } from 'micromark-extension-gfm';
import { isSplittable, splitBlocks } from './split-blocks.js';
import { directionOf } from './text-direction.js';

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

describe('the direction of a text', () => {
  // @shows U66
  it.each([
    ['مرحبا بالعالم', 'rtl'],
    ['שלום, world', 'rtl'],
    ['12: «سلام»', 'rtl'],
    ['ދިވެހި', 'rtl'],
    ['hello עולם', 'ltr'],
    ['日本語', 'ltr'],
    ['1 + 1', 'ltr'],
    ['', 'ltr'],
  ])('is that of its first letter: %s', (text, direction) => expect(directionOf(text)).toBe(direction));
});

const OPTIONS = { extensions: [gfm({ singleTilde: false })], mdastExtensions: [gfmFromMarkdown()] };
const LINES = [
  ...[
    '',
    '',
    '',
    '  ',
    'word',
    'a **b** `c`',
    '  word',
    '    code',
    '- item',
    '* item',
    '2. item',
    '- [x] done',
  ],
  ...[
    '  - nested',
    '# Title',
    '---',
    '- - -',
    '> quote',
    '> - item',
    '```',
    '```ts',
    '~~~',
    '  ```',
    '- ```',
    '`` ` ``',
  ],
  ...[
    '| a | b |',
    '| - | - |',
    '<b>',
    '</b>',
    '<!-- note',
    '-->',
    '<pre>',
    '[a]: /b',
    '[a]',
    'end  ',
    '\u00A0',
  ],
];

/** Returns the elements of a text, without their places and the blank lines after code. */
const elementsOf = (text: string): unknown => {
  const { children } = fromMarkdown(text, OPTIONS);
  const lasting = (name: string, value: unknown): unknown => {
    if (name === 'position') return undefined;
    return name === 'value' ? String(value).replace(/\n+$/, '') : value;
  };
  return JSON.parse(JSON.stringify(children, lasting));
};

describe('blocks of a growing answer', () => {
  it('end at blank lines, and only the last one grows', () => {
    const before = splitBlocks('# Title\n\nfirst\n\nsecond');
    expect(before).toEqual(['# Title\n', 'first\n', 'second']);
    expect(splitBlocks('# Title\n\nfirst\n\nsecond line').slice(0, 2)).toEqual(before.slice(0, 2));
  });

  it('keep code together, blank lines included', () => {
    expect(splitBlocks('```ts\na\n\nb\n```\n\nafter')).toEqual(['```ts\na\n\nb\n```\n', 'after']);
  });

  it('have the elements of the whole text, unless it says that it is not splittable', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...LINES), { maxLength: 14 }), (lines) => {
        const text = lines.join('\n');
        fc.pre(isSplittable(text));
        expect(splitBlocks(text).flatMap(elementsOf)).toEqual(elementsOf(text));
      }),
      { numRuns: 2_000 },
    );
  });
});
