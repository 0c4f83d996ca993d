import { headAt } from './statement-head.js';
import type { StatementHead } from './statement-head.js';
import type { Token } from './tokenize.js';
import {
  CLAUSE_OBJECTS,
  CLAUSE_STARTS,
  CLAUSE_WORDS,
  FILLERS_AFTER,
  FILLERS_BEFORE,
  NEGATIONS,
  PLACE_ENDS,
} from './words.js';

export interface StatementObject {
  readonly text: string;
  /** Index behind its last token. */
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

/** Whether the object ends before this token. */
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

/** Single quotes stay on words (`'my name is …'` must not match); around an object they are decoration. */
const unquote = (text: string): string => text.replace(/^'+/, '');

const textOf = (words: readonly Token[]): string =>
  unquote(
    trimFillers(words)
      .map(({ kind, text }, index) => (kind === 'comma' || index === 0 ? text : ` ${text}`))
      .join(''),
  );

const fits = (text: string, words: number): boolean =>
  text !== '' && words <= MAX_OBJECT_WORDS && text.length <= MAX_OBJECT_LENGTH;

/** What a statement says, or null: nothing, a denial, a clause, or too much to be a fact. */
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
