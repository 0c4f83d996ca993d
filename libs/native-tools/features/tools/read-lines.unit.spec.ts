import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { numberLines } from './read-lines.js';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('the lines of a file that a tool shows', () => {
  it('are those of the text, each with its number', () => {
    const line = fc.string({ unit: 'grapheme', maxLength: 20 }).filter((text) => !text.includes('\n'));
    const lines = fc.array(line, { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(
        lines,
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 40 }),
        (all, from, count) => {
          const { text, shown, isClipped, total } = numberLines(encode(`${all.join('\n')}\n`), from, count);
          const expected = all.map((one, index) => `${index + 1}\t${one}`).slice(from - 1, from - 1 + count);
          expect([text, shown, total, isClipped]).toEqual([
            ...[expected.join('\n'), expected.length, all.length, false],
          ]);
        },
      ),
    );
  });

  it('are counted without a line feed at the end, and none of an empty file', () => {
    expect(numberLines(encode('a\nb'), 1, 9)).toMatchObject({ text: '1\ta\n2\tb', total: 2 });
    expect(numberLines(encode(''), 1, 9)).toEqual({ text: '', shown: 0, isClipped: false, total: 0 });
  });

  it.each(['a', 'ß', '中', '👩'])('end after 2,000 units of %s', (unit) => {
    const { text, isClipped } = numberLines(encode(unit.repeat(1_000_000)), 1, 1);
    expect([text, isClipped]).toEqual([`1\t${unit.repeat(2_000 / unit.length)}…`, true]);
    expect(numberLines(encode(unit.repeat(2_000 / unit.length)), 1, 1).isClipped).toBe(false);
  });

  it('end before the first one that does not fit into 100,000 units', () => {
    const long = 'a'.repeat(1_500);
    const shown = numberLines(encode(`${`${long}\n`.repeat(80)}b\n`), 1, 1_000);
    expect([shown.shown, shown.total]).toEqual([66, 81]);
    expect(shown.text.endsWith(long)).toBe(true);
  });
});
