import { createHash } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { editBytes } from './edit-text.js';

const EDITS = 100_000;
const PIECES = [
  ...[
    'a',
    'b',
    'ab',
    '\n',
    '\r\n',
    '\t',
    ' ',
    '  ',
    'é',
    'e\u0301',
    '世',
    '👩‍💻',
    '\u0000',
    '\ufeff',
    '$&',
    '\\',
    '"',
  ],
  ...['x'.repeat(300), '\u2028', 'ß', 'İ', '}', '{\n\t'],
];

/** Small generator of numbers, so that a failure names its seed and step. */
const createRandom = (seed: number) => {
  let state = seed;
  return (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
};

const hash = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

// @shows chats-C7
it(`${EDITS} random edits change only their span`, () => {
  const seed = Number(process.env['ANTIPHON_SEED'] ?? 20261123);
  const random = createRandom(seed);
  const text = (most: number): string =>
    Array.from({ length: random(most + 1) }, () => PIECES[random(PIECES.length)] ?? '').join('');
  let [applied, refused] = [0, 0];
  for (let step = 0; step < EDITS; step++) {
    const [before, old, after, replacement] = [text(30), text(6), text(30), text(6)];
    const file = Buffer.from(`${before}${old}${after}`);
    try {
      const edited = editBytes(file, { old, new: replacement });
      const expected = Buffer.from(`${before}${replacement}${after}`);
      if (hash(edited) !== hash(expected)) throw new Error(`seed ${seed}, step ${step}: wrong bytes`);
      applied++;
    } catch (error) {
      const { code } = error as { code?: string };
      const count = old === '' ? 0 : countPlaces(`${before}${old}${after}`, old);
      const isDue =
        (code === 'FILE.AMBIGUOUS' && count > 1) ||
        (code === 'FILE.INVALID_TEXT' && (old === '' || old === replacement));
      if (!isDue) throw new Error(`seed ${seed}, step ${step}: ${String(code)} ${String(error)}`);
      refused++;
    }
  }
  process.stdout.write(
    `${JSON.stringify({ edits: EDITS, applied, refused, wrongPlaces: 0, falseRefusals: 0, seed })}\n`,
  );
  expect(applied).toBeGreaterThan(EDITS / 10);
}, 300_000);

/** Counts the places of a text, also those that overlap. */
const countPlaces = (text: string, part: string): number => {
  let count = 0;
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + 1)) count++;
  return count;
};
