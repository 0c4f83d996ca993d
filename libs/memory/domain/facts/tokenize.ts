/**
 * A word, a quoted passage or a mark: `stop` and `question` end a sentence, `comma` and `break` a
 * clause.
 */
export interface Token {
  readonly kind: 'word' | 'quote' | 'comma' | 'break' | 'stop' | 'question';
  readonly text: string;
  readonly lower: string;
}

/**
 * Maximum text read, UTF-16 units: a longer message is a pasted document rather than a statement.
 */
export const MAX_SCANNED = 16_384;
const MAX_QUOTE = 500;

const ABBREVIATIONS: ReadonlySet<string> = new Set([
  'st',
  'mr',
  'mrs',
  'ms',
  'dr',
  'jr',
  'sr',
  'prof',
  'mt',
  'ft',
  'no',
]);
const MARKS: Readonly<Record<string, Token['kind']>> = {
  ',': 'comma',
  ';': 'break',
  ':': 'break',
  '(': 'break',
  ')': 'break',
  '[': 'break',
  ']': 'break',
  '—': 'break',
  '–': 'break',
  '.': 'stop',
  '…': 'stop',
  '!': 'stop',
  '?': 'question',
  '\n': 'stop',
};
const BLANK = /\s/;
const ALPHANUMERIC = /[\p{L}\p{N}]/u;
const DIGIT = /\d/;
const UPPER = /\p{Lu}/u;
const LOWER = /\p{Ll}/u;

const token = (kind: Token['kind'], text: string): Token => ({ kind, text, lower: text.toLowerCase() });

/** Removes block quotes and code. */
const withoutQuotedLines = (text: string): string => {
  let fenced = false;
  return text
    .split('\n')
    .filter((line) => {
      const start = line.trimStart();
      const fence = start.startsWith('```') || start.startsWith('~~~');
      if (fence) fenced = !fenced;
      return !fence && !fenced && !start.startsWith('>');
    })
    .join('\n');
};

const straighten = (text: string): string =>
  text.replaceAll(/[\u2018\u2019\u02bc]/g, "'").replaceAll(/[\u201c\u201d\u201e\u00ab\u00bb]/g, '"');

/**
 * Returns whether the mark at `at` belongs to the word around it: `3.5`, `ada@example.org`,
 * `1,000`, `5:30`.
 */
const joins = (text: string, at: number): boolean => {
  const mark = text[at] ?? '';
  const before = text[at - 1] ?? '';
  const after = text[at + 1] ?? '';
  if (mark === '.') return ALPHANUMERIC.test(after) && !(UPPER.test(after) && LOWER.test(before));
  if (mark === ',' || mark === ':') return DIGIT.test(before) && DIGIT.test(after);
  return false;
};

const isAbbreviation = (word: string): boolean =>
  ABBREVIATIONS.has(word.toLowerCase()) || (word.length === 1 && UPPER.test(word));

const wordEnd = (text: string, start: number): number => {
  let end = start;
  for (; end < text.length; end++) {
    const c = text[end] ?? '';
    if (BLANK.test(c) || c === '"' || c === '`') break;
    if (c in MARKS && !(end > start && joins(text, end))) break;
  }
  return text[end] === '.' && isAbbreviation(text.slice(start, end)) ? end + 1 : end;
};

const quoteEnd = (text: string, start: number): number => {
  const end = text.indexOf(text[start] ?? '', start + 1);
  return end === -1 || end - start > MAX_QUOTE ? -1 : end;
};

const DECORATION: ReadonlySet<string> = new Set(['*', '_', '~', "'"]);

/**
 * Removes Markdown decoration around a word. A regular expression for this takes quadratic time.
 */
const plain = (word: string): string => {
  let start = 0;
  let end = word.length;
  while (start < end && DECORATION.has(word[start] ?? '')) start++;
  while (end > start && DECORATION.has(word[end - 1] ?? '')) end--;
  return word.slice(start, end);
};

/** Reads the token at `at` and its end; the token is null for a blank or a stray mark. */
const nextToken = (text: string, at: number): { end: number; token: Token | null } => {
  const c = text[at] ?? '';
  const mark = MARKS[c];
  if (mark !== undefined) return { end: at + 1, token: token(mark, c) };
  if (BLANK.test(c)) return { end: at + 1, token: null };
  if (c === '"' || c === '`') {
    const end = quoteEnd(text, at);
    return end === -1
      ? { end: at + 1, token: null }
      : { end: end + 1, token: token('quote', text.slice(at + 1, end)) };
  }
  const end = wordEnd(text, at);
  const word = text.slice(at, end);
  if (word === '-' || word === '--') return { end, token: token('break', word) };
  return { end, token: token('word', word.startsWith("'") ? word : plain(word)) };
};

/**
 * Splits a message into tokens, in linear time. Block quotes and code fences are left out and a
 * quoted passage is one token, because they repeat other texts.
 */
export const tokenize = (message: string): Token[] => {
  const text = straighten(withoutQuotedLines(message.slice(0, MAX_SCANNED)));
  const tokens: Token[] = [];
  for (let at = 0; at < text.length;) {
    const { end, token } = nextToken(text, at);
    if (token !== null) tokens.push(token);
    at = end;
  }
  return tokens;
};
