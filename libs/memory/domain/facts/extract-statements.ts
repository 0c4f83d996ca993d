import { LIVES_IN, headAt, objectAt } from './statement-parts.js';
import { tokenize } from './tokenize.js';
import type { Token } from './tokenize.js';
import { HEDGES, HYPOTHETICALS, NEGATIONS, PASSIVES, QUESTION_STARTS, REPORTS, SPEAKER } from './words.js';

/** A statement of the speaker about themselves. */
export interface Statement {
  readonly subject: 'user';
  readonly predicate: string;
  readonly object: string;
  /** 0 to 1. */
  readonly confidence: number;
}

export const MAX_STATEMENTS = 16;
const PLAIN_PATTERNS: ReadonlySet<string> = new Set(['name', LIVES_IN]);
const CONFIDENCE = { pattern: 0.9, general: 0.8, hedged: 0.5 } as const;
const JOINING_WORDS: ReadonlySet<string> = new Set(['and', 'but', 'so', 'or', 'because', 'since', 'also']);

const endsClause = ({ kind, lower }: Token): boolean =>
  (kind !== 'word' && kind !== 'quote') || (kind === 'word' && JOINING_WORDS.has(lower));

/**
 * Returns for each token whether its clause ends with a question mark, in one pass from the end.
 */
const questionsAhead = (tokens: readonly Token[]): readonly boolean[] => {
  const asked: boolean[] = new Array<boolean>(tokens.length + 1).fill(false);
  for (let i = tokens.length - 1; i >= 0; i--) {
    const token = tokens[i];
    if (token !== undefined)
      asked[i] = endsClause(token) ? token.kind === 'question' : (asked[i + 1] ?? false);
  }
  return asked;
};

/**
 * Returns whether a report is of another person: `she said …`, `I was told …`, but not `I told you
 * …`.
 */
const isHearsay = (words: readonly string[], at: number): boolean =>
  PASSIVES.has(words[at - 1] ?? '') || !words.slice(0, at).some((word) => SPEAKER.has(word));

/** Classifies a statement by the words before it in its clause. */
const classify = (words: readonly string[]): 'said' | 'hedged' | 'not said' => {
  if (QUESTION_STARTS.has(words[0] ?? '')) return 'not said';
  let hedged = false;
  for (const [at, word] of words.entries()) {
    // "Don't forget my name is Ada" is a statement.
    const denied = NEGATIONS.has(word) && words[at + 1] !== 'forget';
    if (denied || HYPOTHETICALS.has(word) || (REPORTS.has(word) && isHearsay(words, at))) return 'not said';
    hedged ||= HEDGES.has(word);
  }
  return hedged ? 'hedged' : 'said';
};

const statement = (predicate: string, object: string, hedged: boolean): Statement => {
  const sure = PLAIN_PATTERNS.has(predicate) ? CONFIDENCE.pattern : CONFIDENCE.general;
  return { subject: 'user', predicate, object, confidence: hedged ? CONFIDENCE.hedged : sure };
};

/** Maximum number of words read before a statement. */
const MAX_LEAD = 12;

interface Found {
  readonly statement: Statement | null;
  readonly end: number;
}

const readAt = (
  tokens: readonly Token[],
  asked: readonly boolean[],
  at: number,
  clauseAt: number,
): Found | null => {
  const head = headAt(tokens, at);
  const object = head === null ? null : objectAt(tokens, head);
  if (head === null || object === null) return null;
  const lead = tokens.slice(Math.max(clauseAt, at - MAX_LEAD), at).map(({ lower }) => lower);
  const state = asked[object.end] ? 'not said' : classify(lead);
  const said = state === 'not said' ? null : statement(head.predicate, object.text, state === 'hedged');
  return { statement: said, end: object.end };
};

/**
 * Extracts a message's statements about its speaker, in order: `my name is X`, `I live in X`, `my X
 * is Y` and close variants. Skips questions, denials, suppositions, reports and quoted text. Reads
 * the first `MAX_SCANNED` characters in linear time and returns at most `MAX_STATEMENTS`.
 */
export const extractStatements = (message: string): Statement[] => {
  const tokens = tokenize(message);
  const asked = questionsAhead(tokens);
  const statements: Statement[] = [];
  let clauseAt = 0;
  for (let at = 0; at < tokens.length && statements.length < MAX_STATEMENTS;) {
    const found = readAt(tokens, asked, at, clauseAt);
    if (found?.statement) statements.push(found.statement);
    if (found !== null) clauseAt = at = found.end;
    else {
      const token = tokens[at];
      at++;
      if (token !== undefined && endsClause(token)) clauseAt = at;
    }
  }
  return statements;
};
