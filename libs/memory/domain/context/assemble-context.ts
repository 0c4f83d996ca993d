import type { Fact } from '@antiphon/contracts/memory';
import { spell } from '../facts/words.js';
import { estimateTokens, fitSoul } from './soul.js';
import type { Soul } from './soul.js';

const MAX_QUERY_LENGTH = 4_096;
const STOP_WORDS: ReadonlySet<string> = new Set(
  `a an the i you he she it we they me my your his her its our their is are was were am be been do does did have has had
   in on at of to for from with and or but not what which how when why can could would will should please tell know that this`.split(
    /\s+/,
  ),
);
/** Words of a question that stand for a predicate. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  where: ['live'],
  city: ['live'],
  home: ['live'],
  country: ['live'],
  who: ['name'],
  call: ['name'],
  named: ['name'],
};

const ENDINGS = ['ing', 'ed', 'es', 's', 'e'];
/**
 * Reduces a word to a rough stem, for the query and the facts alike: `lives`, `living` and `live`
 * match.
 */
const stem = (word: string): string => {
  const ending = ENDINGS.find((end) => word.endsWith(end) && word.length - end.length >= 3);
  return ending === undefined ? word : word.slice(0, -ending.length);
};

const termsOf = (text: string): string[] =>
  (
    text
      .slice(0, MAX_QUERY_LENGTH)
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  )
    .filter((word) => !STOP_WORDS.has(word))
    .map((word) => stem(spell(word)));

const queryTerms = (query: string): ReadonlySet<string> => {
  const terms = termsOf(query);
  const synonyms = Object.entries(SYNONYMS).flatMap(([word, others]) =>
    terms.includes(stem(word)) ? others.map(stem) : [],
  );
  return new Set([...terms, ...synonyms]);
};

const relevance = (
  { predicate, object }: Pick<Fact, 'predicate' | 'object'>,
  wanted: ReadonlySet<string>,
): number => new Set(termsOf(`${predicate} ${object}`).filter((term) => wanted.has(term))).size;

/** Estimates the tokens of a fact in a prompt, on its own line. */
export const factTokens = ({ subject, predicate, object }: Fact): number =>
  estimateTokens(`- ${subject} | ${predicate} | ${object}\n`);

/** Tokens of the heading above the facts. */
export const HEADING_TOKENS = 48;

export interface Selection {
  readonly facts: readonly Fact[];
  readonly tokens: number;
}

/**
 * Selects facts for a context within `budgetTokens`, most relevant to the query first, newest first
 * among equals. `active` is in the order in which the facts were learned.
 */
export const selectFacts = (active: readonly Fact[], query: string, budgetTokens: number): Selection => {
  const wanted = queryTerms(query);
  const ranked = active
    .map((fact, age) => ({ fact, age, relevance: relevance(fact, wanted) }))
    .sort((a, b) => b.relevance - a.relevance || b.age - a.age);
  const facts: Fact[] = [];
  let tokens = HEADING_TOKENS;
  for (const { fact } of ranked) {
    const cost = factTokens(fact);
    if (tokens + cost > budgetTokens) continue;
    facts.push(fact);
    tokens += cost;
  }
  return facts.length === 0 ? { facts, tokens: 0 } : { facts, tokens };
};

/**
 * Returns the facts that share a word with the query, most relevant first and newest first among
 * equals. `facts` is in the order in which they were learned.
 */
export const searchFacts = <F extends Pick<Fact, 'predicate' | 'object'>>(
  facts: readonly F[],
  query: string,
): readonly F[] => {
  const wanted = queryTerms(query);
  return facts
    .map((fact, age) => ({ fact, age, relevance: relevance(fact, wanted) }))
    .filter((ranked) => ranked.relevance > 0)
    .sort((a, b) => b.relevance - a.relevance || b.age - a.age)
    .map(({ fact }) => fact);
};

export interface ContextParts {
  readonly soul: Soul | null;
  /** Facts in force, in the order in which they were learned. */
  readonly facts: readonly Fact[];
  readonly query: string;
  readonly budgetTokens: number;
}

export interface AssembledContext {
  readonly soul: Soul | null;
  readonly facts: readonly Fact[];
  /** Tokens of soul and facts; never above the budget. */
  readonly tokens: number;
}

/**
 * Assembles the memory part of a model's context: the soul, then the relevant facts, within the
 * budget.
 */
export const assembleContext = ({ soul, facts, query, budgetTokens }: ContextParts): AssembledContext => {
  const fitted = fitSoul(soul, budgetTokens);
  const soulTokens = fitted?.tokens ?? 0;
  const selection = selectFacts(facts, query, budgetTokens - soulTokens);
  return { soul: fitted, facts: selection.facts, tokens: soulTokens + selection.tokens };
};
