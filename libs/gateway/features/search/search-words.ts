/** Number of words of a search that count. */
const MAX_WORDS = 8;
const MAX_WORD = 60;
/** Punctuation of ASCII and spaces, which separate words as in the SQL function of the index. */
const SEPARATORS = /[\u0000-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u007f\s]+/;
/** A character that is a word of its own, as in the SQL function of the index. */
const SINGLE = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/;
const PIECES = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+/g;

/** Returns the words of a search, in the order of its text. */
export const wordsOf = (text: string): readonly string[] =>
  text
    .toWellFormed()
    .split(SEPARATORS)
    .filter((word) => word !== '')
    .map((word) => word.slice(0, MAX_WORD).toWellFormed())
    .slice(0, MAX_WORDS);

/** Returns a word as a part of a query: its beginning, or characters that follow one another. */
const termOf = (word: string): string => {
  const pieces = word.match(PIECES) ?? [];
  return pieces.map((piece) => (SINGLE.test(piece) ? `'${piece}'` : `'${piece}':*`)).join(' <-> ');
};

/** Returns the words as a query of PostgreSQL, all of which a text must have; null without one. */
export const toTextQuery = (words: readonly string[]): string | null =>
  words.length === 0 ? null : words.map((word) => `(${termOf(word)})`).join(' & ');

/** Length of the text around a hit, on each side. */
const AROUND = 80;

/** Returns the text around the first of some words, as one line. */
export const excerptOf = (text: string, words: readonly string[]): string => {
  const lower = text.toLowerCase();
  const found = words.map((word) => lower.indexOf(word.toLowerCase())).filter((index) => index >= 0);
  const at = found.length === 0 ? 0 : Math.min(...found);
  const start = Math.max(0, at - AROUND);
  const end = at + 2 * AROUND;
  const line = text.slice(start, end).toWellFormed().replaceAll(/\s+/g, ' ').trim();
  return `${start > 0 ? '…' : ''}${line}${end < text.length ? '…' : ''}`;
};
