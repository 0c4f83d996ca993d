import type { Token } from './tokenize.js';
import {
  CLAUSE_OBJECTS,
  CLAUSE_STARTS,
  CLAUSE_WORDS,
  FILLERS_AFTER,
  FILLERS_BEFORE,
  LIVE_ADVERBS,
  NEGATIONS,
  NOT_IN_PREDICATE,
  PASSING_ADJECTIVES,
  PLACE_ENDS,
  PREPOSITIONS,
  REPORTS,
  spell,
  TALK_NOUNS,
} from './words.js';

/** Start of a statement about the speaker: `my favorite color is`, `I live in`. */
export interface StatementHead {
  readonly predicate: string;
  /** Index of the first token of the object. */
  readonly objectAt: number;
  readonly place: boolean;
}

const MAX_PREDICATE_WORDS = 4;
const MAX_ADVERBS = 3;
const MAX_PREDICATE_LENGTH = 60;
export const LIVES_IN = 'lives in';

const wordAt = (tokens: readonly Token[], at: number): string | null => {
  const token = tokens[at];
  return token?.kind === 'word' ? token.lower : null;
};

const toPredicate = (words: readonly string[]): string | null => {
  const [first = '', ...rest] = words;
  const named = (rest.length > 0 && PASSING_ADJECTIVES.has(first) ? rest : words).map(spell);
  const predicate = named.join(' ');
  const usable =
    named.length > 0 && predicate.length <= MAX_PREDICATE_LENGTH && !TALK_NOUNS.has(named.at(-1) ?? '');
  return usable ? predicate : null;
};

const head = (words: readonly string[], objectAt: number): StatementHead | null => {
  const predicate = toPredicate(words);
  return predicate === null ? null : { predicate, objectAt, place: false };
};

/** Matches `my name's Ada` and `my dog's Rex`, but not `my daughter's birthday`. */
const isContraction = (tokens: readonly Token[], at: number): boolean =>
  (wordAt(tokens, at)?.endsWith("'s") ?? false) &&
  (wordAt(tokens, at) === "name's" || /^\p{Lu}/u.test(tokens[at + 1]?.text ?? ''));

/** Returns false for `my X` after a preposition or participle: `seeing my dog is fun`. */
const isSubject = (tokens: readonly Token[], at: number): boolean => {
  const before = wordAt(tokens, at - 1);
  if (before === null) return true;
  return !PREPOSITIONS.has(before) && (!before.endsWith('ing') || REPORTS.has(before));
};

/** Matches `my X is` and `my X are`, otherwise `my X's`. */
const possessiveHead = (tokens: readonly Token[], at: number): StatementHead | null => {
  const words: string[] = [];
  let contracted: StatementHead | null = null;
  for (let i = at + 1; words.length <= MAX_PREDICATE_WORDS; i++) {
    const word = wordAt(tokens, i);
    if (word === null) break;
    if ((word === 'is' || word === 'are') && words.length > 0) return head(words, i + 1);
    if (NOT_IN_PREDICATE.has(word)) break;
    if (isContraction(tokens, i) && contracted === null)
      contracted = head([...words, word.slice(0, -2)], i + 1);
    words.push(word);
  }
  return contracted;
};

const afterAdverbs = (tokens: readonly Token[], at: number): number => {
  let i = at;
  while (i < at + MAX_ADVERBS && LIVE_ADVERBS.has(wordAt(tokens, i) ?? '')) i++;
  return i;
};

const LIVE_VERBS = { plain: ['live', 'reside'], progressive: ['living', 'based', 'residing'] } as const;

/** Matches `I` or `I am`; returns the position after it and the verbs that may follow. */
const speakerAt = (
  tokens: readonly Token[],
  at: number,
): { next: number; verbs: readonly string[] } | null => {
  const first = wordAt(tokens, at);
  if (first === "i'm" || first === 'im') return { next: at + 1, verbs: LIVE_VERBS.progressive };
  if (first !== 'i') return null;
  if (wordAt(tokens, at + 1) === 'am') return { next: at + 2, verbs: LIVE_VERBS.progressive };
  return { next: at + 1, verbs: LIVE_VERBS.plain };
};

/**
 * Matches `I live in`, `I am living in` and `I'm based in`, also with `now`, `currently` and the
 * like.
 */
const placeHead = (tokens: readonly Token[], at: number): StatementHead | null => {
  const speaker = speakerAt(tokens, at);
  if (speaker === null) return null;
  const verbAt = afterAdverbs(tokens, speaker.next);
  const preposition = wordAt(tokens, verbAt + 1);
  const fits = speaker.verbs.includes(wordAt(tokens, verbAt) ?? '');
  if (!fits || (preposition !== 'in' && preposition !== 'at')) return null;
  return { predicate: LIVES_IN, objectAt: verbAt + 2, place: true };
};

/** Matches the start of a statement at a token; reads a bounded number of tokens ahead. */
export const headAt = (tokens: readonly Token[], at: number): StatementHead | null => {
  if (wordAt(tokens, at) !== 'my') return placeHead(tokens, at);
  return isSubject(tokens, at) ? possessiveHead(tokens, at) : null;
};

export interface StatementObject {
  readonly text: string;
  /** Index after its last token. */
  readonly end: number;
}

const MAX_OBJECT_WORDS = 12;
const MAX_OBJECT_LENGTH = 120;

const startsClause = (tokens: readonly Token[], at: number): boolean => {
  const token = tokens[at];
  return token?.kind !== 'word' || CLAUSE_STARTS.has(token.lower);
};

const isCapitalised = (token: Token | undefined): boolean =>
  token?.kind === 'word' && /^[\p{Lu}\p{N}]/u.test(token.text);

/** Returns whether the object ends before this token. */
const endsAt = (tokens: readonly Token[], at: number, place: boolean): boolean => {
  const token = tokens[at];
  if (token === undefined) return true;
  if (token.kind === 'comma') return !isCapitalised(tokens[at + 1]) || startsClause(tokens, at + 1);
  if (token.kind !== 'word') return true;
  const { lower } = token;
  if (CLAUSE_WORDS.has(lower) || (place && PLACE_ENDS.has(lower))) return true;
  if (lower === 'and' || lower === 'so' || lower === 'or') return startsClause(tokens, at + 1);
  return headAt(tokens, at) !== null;
};

const skipFillers = (tokens: readonly Token[], at: number): number => {
  let i = tokens[at]?.text === ':' ? at + 1 : at;
  while (FILLERS_BEFORE.has(tokens[i]?.lower ?? '') && tokens[i + 1]?.kind === 'word') i++;
  return i;
};

const trimFillers = (words: readonly Token[]): readonly Token[] => {
  let end = words.length;
  while (end > 1 && FILLERS_AFTER.has(words[end - 1]?.lower ?? '')) end--;
  return words.slice(0, end);
};

/**
 * Removes single quotes before an object. On other words they stay: `'my name is …'` must not
 * match.
 */
const unquote = (text: string): string => text.replace(/^'+/, '');

const textOf = (words: readonly Token[]): string =>
  unquote(
    trimFillers(words)
      .map(({ kind, text }, index) => (kind === 'comma' || index === 0 ? text : ` ${text}`))
      .join(''),
  );

const fits = (text: string, words: number): boolean =>
  text !== '' && words <= MAX_OBJECT_WORDS && text.length <= MAX_OBJECT_LENGTH;

/**
 * Reads the object of a statement. Returns null for none, a denial, a clause or an object too long
 * for a fact.
 */
export const objectAt = (
  tokens: readonly Token[],
  { objectAt: at, place }: StatementHead,
): StatementObject | null => {
  const start = skipFillers(tokens, at);
  const first = tokens[start];
  if (first?.kind === 'quote') {
    const text = first.text.trim();
    return fits(text, 1) ? { text, end: start + 1 } : null;
  }
  if (first === undefined || NEGATIONS.has(first.lower) || CLAUSE_OBJECTS.has(first.lower)) return null;
  let end = start;
  while (end - start <= MAX_OBJECT_WORDS && !endsAt(tokens, end, place)) end++;
  const words = tokens.slice(start, end);
  const text = textOf(words);
  return fits(text, words.length) ? { text, end } : null;
};
