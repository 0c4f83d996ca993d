import type { Cause } from '@antiphon/contracts/causes';
import { findSequence } from './find-sequence.js';

/** How the nearest text differs from the sought one. */
export interface Difference {
  /** Description of the nearest text. */
  readonly near: Cause;
  /** First lines of the nearest places. */
  readonly lines: readonly number[];
  /** Text of the file that equals the sought one in a tolerant comparison. Never applied. */
  readonly proposal: string | null;
}

/** Maximum size of a file that is compared, bytes. */
const MAX_COMPARED_BYTES = 4 * 1024 * 1024;
const MAX_SHOWN_CHARS = 2_000;
const MAX_PLACES = 5;

const QUOTES: Readonly<Record<string, string>> = {
  ...{ '“': '"', '”': '"', '„': '"', '‘': "'", '’': "'", '–': '-', '—': '-', '−': '-', '\u00a0': ' ' },
};

interface Rule {
  readonly name: string;
  readonly apply: (line: string) => string;
}

const isBlank = (char: string | undefined): boolean => char === ' ' || char === '\t';

/** Removes blanks at the end of a line, before a carriage return. */
const trimBlanks = (line: string): string => {
  const ending = line.endsWith('\r') ? '\r' : '';
  let end = line.length - ending.length;
  while (isBlank(line[end - 1])) end--;
  return `${line.slice(0, end)}${ending}`;
};

/** More marks after each other than a text has. Their order costs the square of their number. */
const MANY_MARKS = /\p{M}{31}/u;

const compose = (line: string): string => (MANY_MARKS.test(line) ? line : line.normalize('NFC'));

/** Differences that a reader of the file does not see. */
const RULES: readonly Rule[] = [
  {
    name: 'line_endings',
    apply: (line) => line.replace(/\r$/, ''),
  },
  { name: 'line_ends', apply: trimBlanks },
  { name: 'indentation', apply: (line) => line.replace(/^[ \t]+/, '') },
  { name: 'white_space', apply: (line) => line.replace(/(?<=\S)[ \t]+/g, ' ') },
  { name: 'unicode_form', apply: compose },
  { name: 'byte_order_mark', apply: (line) => line.replace(/^\ufeff/, '') },
  {
    name: 'quotes',
    apply: (line) => line.replace(/[“”„‘’–—−\u00a0]/g, (char) => QUOTES[char] ?? char),
  },
  { name: 'capitals', apply: (line) => line.toLowerCase() },
];

const applyAll = (rules: readonly Rule[], line: string): string =>
  line === '' ? line : rules.reduce((text, { apply }) => apply(text), line);

const withoutEmptyEnds = (lines: readonly string[]): readonly string[] => {
  let from = 0;
  let to = lines.length;
  while (from < to && (lines[from] ?? '').trim() === '') from++;
  while (to > from && (lines[to - 1] ?? '').trim() === '') to--;
  return lines.slice(from, to);
};

/** Returns the rules that are needed, each of which alone is not enough to leave out. */
const neededRules = (lines: readonly string[], sought: readonly string[]): readonly Rule[] => {
  let rules = RULES;
  for (const rule of RULES) {
    const fewer = rules.filter((other) => other !== rule);
    const isEnough = lines.every(
      (line, index) => applyAll(fewer, line) === applyAll(fewer, sought[index] ?? ''),
    );
    if (isEnough) rules = fewer;
  }
  return rules;
};

const wordsOf = (line: string): string[] => line.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];

/** Returns the index of the line that shares the largest part of its words, or -1. */
const findSimilar = (lines: readonly string[], sought: readonly string[]): number => {
  const longest = sought.reduce((best, line) => (line.length > best.length ? line : best), '');
  const words = new Set(wordsOf(longest));
  let best = { index: -1, score: 0.3 };
  lines.forEach((line, index) => {
    if (line.length > 10_000) return;
    const own = new Set(wordsOf(line));
    const shared = [...own].filter((word) => words.has(word)).length;
    const score = shared / Math.max(1, own.size + words.size - shared);
    if (score > best.score) best = { index, score };
  });
  return best.index;
};

const clip = (text: string): string =>
  text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}…` : text;

const tolerantMatch = (lines: readonly string[], sought: readonly string[]): Difference | null => {
  const folded = lines.map((line) => applyAll(RULES, line));
  const places = findSequence(
    folded,
    sought.map((line) => applyAll(RULES, line)),
    MAX_PLACES,
  );
  const [place] = places;
  if (place === undefined) return null;
  const found = lines.slice(place, place + sought.length);
  const names = neededRules(found, sought).map(({ name }) => name);
  const numbers = places.map((at) => at + 1);
  const proposal = found.join('\n');
  return {
    near: { kind: 'edit_near_equal', differs: names.join(', '), lines: numbers.join(', ') },
    lines: numbers,
    proposal: places.length === 1 && proposal.length <= MAX_SHOWN_CHARS ? proposal : null,
  };
};

/** Describes how the nearest text of a file differs from a text that does not occur in it. */
export const findDifference = (bytes: Uint8Array, old: string): Difference => {
  if (bytes.length > MAX_COMPARED_BYTES)
    return { near: { kind: 'edit_not_compared' }, lines: [], proposal: null };
  const lines = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes).split('\n');
  const sought = withoutEmptyEnds(old.split('\n'));
  const tolerant = sought.length === 0 ? null : tolerantMatch(lines, sought);
  if (tolerant) return tolerant;
  const nearest = findSimilar(lines, sought);
  if (nearest === -1) return { near: { kind: 'edit_near_nothing' }, lines: [], proposal: null };
  const from = Math.max(0, nearest - 1);
  const shown = lines.slice(from, nearest + Math.min(sought.length, 5) + 1);
  const numbered = shown.map((line, index) => `${from + index + 1}\t${line}`).join('\n');
  const near: Cause = { kind: 'edit_near_lines', shown: clip(numbered) };
  return { near, lines: [nearest + 1], proposal: null };
};
