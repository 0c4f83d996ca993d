import type { Place } from './config-problem.js';

export const MAX_CONFIG_BYTES = 1024 * 1024;
export const MAX_CONFIG_DEPTH = 32;
/** Maximum length of a string. The parser spreads its code points onto the stack. */
export const MAX_STRING_LENGTH = 64 * 1024;

export interface LimitProblem extends Place {
  readonly message: string;
  readonly expected: string;
}

interface Scan {
  readonly text: string;
  index: number;
  line: number;
  lineStart: number;
  /** Open brackets and braces. */
  depth: number;
  /** Dots of the current key or number. */
  dots: number;
}

const here = ({ index, line, lineStart }: Scan): Place => ({ line, column: index - lineStart + 1 });

const quoteAt = ({ text, index }: Scan): string => {
  const quote = text.charAt(index);
  return text.startsWith(quote.repeat(3), index) ? quote.repeat(3) : quote;
};

/** Skips a string. An unterminated one ends with its line or the file; the parser reports it. */
const skipString = (scan: Scan): number => {
  const { text } = scan;
  const start = scan.index;
  const quote = quoteAt(scan);
  scan.index += quote.length;
  for (; scan.index < text.length; scan.index++) {
    const c = text[scan.index];
    if (c === '\\' && quote.startsWith('"') && text[scan.index + 1] !== '\n') scan.index++;
    else if (c === '\n') {
      if (quote.length === 1) return scan.index - start;
      scan.line++;
      scan.lineStart = scan.index + 1;
    } else if (text.startsWith(quote, scan.index)) {
      scan.index += quote.length;
      return scan.index - start;
    }
  }
  return scan.index - start;
};

const skipComment = (scan: Scan): void => {
  const end = scan.text.indexOf('\n', scan.index);
  scan.index = end === -1 ? scan.text.length : end;
};

const TOO_DEEP = {
  message: `nests deeper than ${MAX_CONFIG_DEPTH} levels`,
  expected: `at most ${MAX_CONFIG_DEPTH} levels of arrays, tables and dotted keys`,
};
const TOO_LONG = {
  message: 'a string is too long',
  expected: `at most ${MAX_STRING_LENGTH} characters; longer texts belong in a file (soul_path, identity_dir)`,
};

const OPENING: ReadonlySet<string> = new Set(['[', '{']);
const CLOSING: ReadonlySet<string> = new Set([']', '}']);
/** Characters after which a new dotted key begins. */
const KEY_BREAKS: ReadonlySet<string> = new Set(['\n', '=', ',', '[', '{']);

/** Counts and skips one character outside of strings and comments. */
const countCharacter = (scan: Scan, c: string): void => {
  if (c === '.') scan.dots++;
  else if (KEY_BREAKS.has(c)) scan.dots = 0;
  if (OPENING.has(c)) scan.depth++;
  else if (CLOSING.has(c)) scan.depth--;
  scan.index++;
  if (c === '\n') {
    scan.line++;
    scan.lineStart = scan.index;
  }
};

/**
 * Finds input that would overflow the recursive parser: nesting, long dotted keys, huge strings. It
 * needs one pass without recursion. Returns null if the text is safe to parse.
 */
export const findLimitProblem = (text: string): LimitProblem | null => {
  const scan: Scan = { text, index: 0, line: 1, lineStart: 0, depth: 0, dots: 0 };
  while (scan.index < text.length) {
    const c = text.charAt(scan.index);
    const place = here(scan);
    if (c === '#') skipComment(scan);
    else if (c !== '"' && c !== "'") countCharacter(scan, c);
    else if (skipString(scan) > MAX_STRING_LENGTH) return { ...place, ...TOO_LONG };
    if (scan.depth > MAX_CONFIG_DEPTH || scan.dots >= MAX_CONFIG_DEPTH) return { ...place, ...TOO_DEEP };
  }
  return null;
};
