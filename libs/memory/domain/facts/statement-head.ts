import type { Token } from './tokenize.js';
import {
  LIVE_ADVERBS,
  NOT_IN_PREDICATE,
  PASSING_ADJECTIVES,
  PREPOSITIONS,
  REPORTS,
  TALK_NOUNS,
  spell,
} from './words.js';

/** The beginning of a statement about the speaker: `my favorite color is`, `I live in`. */
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

/** `my name's Ada`, `my dog's Rex`, but not `my daughter's birthday`. */
const isContraction = (tokens: readonly Token[], at: number): boolean =>
  (wordAt(tokens, at)?.endsWith("'s") ?? false) &&
  (wordAt(tokens, at) === "name's" || /^\p{Lu}/u.test(tokens[at + 1]?.text ?? ''));

/** A preposition or a participle before `my X` makes it part of something else: `seeing my dog is fun`. */
const isSubject = (tokens: readonly Token[], at: number): boolean => {
  const before = wordAt(tokens, at - 1);
  if (before === null) return true;
  return !PREPOSITIONS.has(before) && (!before.endsWith('ing') || REPORTS.has(before));
};

/** `my X is`, `my X are`; else `my X's`. */
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

/** Behind `I` or `I am`, and which verbs may follow; null when there is no such subject. */
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

/** `I live in`, `I am living in`, `I'm based in`, each with `now`, `currently` and the like. */
const placeHead = (tokens: readonly Token[], at: number): StatementHead | null => {
  const speaker = speakerAt(tokens, at);
  if (speaker === null) return null;
  const verbAt = afterAdverbs(tokens, speaker.next);
  const preposition = wordAt(tokens, verbAt + 1);
  const fits = speaker.verbs.includes(wordAt(tokens, verbAt) ?? '');
  if (!fits || (preposition !== 'in' && preposition !== 'at')) return null;
  return { predicate: LIVES_IN, objectAt: verbAt + 2, place: true };
};

/** The statement that begins at a token, or null. Looks a bounded number of tokens ahead. */
export const headAt = (tokens: readonly Token[], at: number): StatementHead | null => {
  if (wordAt(tokens, at) !== 'my') return placeHead(tokens, at);
  return isSubject(tokens, at) ? possessiveHead(tokens, at) : null;
};
