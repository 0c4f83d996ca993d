/** One part of a pattern: a character, any character, any text, or a class of characters. */
type Token =
  | { readonly kind: 'character'; readonly value: string }
  | { readonly kind: 'any' }
  | { readonly kind: 'star' }
  | {
      readonly kind: 'class';
      readonly isNegated: boolean;
      readonly ranges: readonly (readonly [string, string])[];
    };

/** A part of a path as a pattern. Null stands for `**`: any number of parts. */
type PartPattern = readonly Token[] | null;

interface IgnoreRule {
  readonly isNegated: boolean;
  readonly isFolderOnly: boolean;
  readonly parts: readonly PartPattern[];
}

/** Maximum number of rules of one file; further ones have no effect. */
export const MAX_RULES = 2_000;

/** Reads a class of characters after its `[`. Returns null if it has no end. */
const readClass = (glob: string, from: number): { token: Token; end: number } | null => {
  const isNegated = glob[from] === '!' || glob[from] === '^';
  const ranges: [string, string][] = [];
  for (let at = from + (isNegated ? 1 : 0), isFirst = true; at < glob.length; isFirst = false) {
    if (glob[at] === ']' && !isFirst) return { token: { kind: 'class', isNegated, ranges }, end: at + 1 };
    if (glob[at] === '\\') at++;
    const start = glob[at++] ?? '';
    const hasEnd = glob[at] === '-' && at + 1 < glob.length && glob[at + 1] !== ']';
    if (hasEnd && glob[at + 1] === '\\') at++;
    ranges.push([start, hasEnd ? (glob[at + 1] ?? '') : start]);
    if (hasEnd) at += 2;
  }
  return null;
};

/** Returns the tokens of one part of a pattern; undefined if it can match nothing. */
const tokensOf = (glob: string): Token[] | undefined => {
  const tokens: Token[] = [];
  for (let at = 0; at < glob.length;) {
    const character = glob[at++] ?? '';
    if (character === '*') {
      if (tokens.at(-1)?.kind !== 'star') tokens.push({ kind: 'star' });
    } else if (character === '?') tokens.push({ kind: 'any' });
    else if (character === '[') {
      const read = readClass(glob, at);
      if (!read) return undefined;
      tokens.push(read.token);
      at = read.end;
    } else if (character === '\\') {
      if (at === glob.length) return undefined;
      tokens.push({ kind: 'character', value: glob[at++] ?? '' });
    } else tokens.push({ kind: 'character', value: character });
  }
  return tokens;
};

const isMatch = (token: Token | undefined, character: string): boolean => {
  if (token?.kind === 'character') return token.value === character;
  if (token?.kind !== 'class') return token?.kind === 'any';
  return token.isNegated !== token.ranges.some(([from, to]) => from <= character && character <= to);
};

/**
 * Matches a pattern with wildcards for any number of items. After a mismatch it goes back to the
 * last wildcard only, so that the time is at most the product of both lengths.
 */
const matchAll = <P, I>(
  pattern: readonly P[],
  items: ArrayLike<I>,
  isWildcard: (one: P | undefined) => boolean,
  matches: (one: P | undefined, item: I) => boolean,
): boolean => {
  let [at, next] = [0, 0];
  let wildcard = -1;
  let retry = 0;
  while (at < items.length) {
    if (next < pattern.length && isWildcard(pattern[next])) {
      wildcard = next++;
      retry = at;
    } else if (next < pattern.length && matches(pattern[next], items[at] as I)) {
      next++;
      at++;
    } else if (wildcard === -1) return false;
    else {
      next = wildcard + 1;
      at = ++retry;
    }
  }
  while (next < pattern.length && isWildcard(pattern[next])) next++;
  return next === pattern.length;
};

const isStar = (token: Token | undefined): boolean => token?.kind === 'star';

const matchPart = (pattern: PartPattern | undefined, part: string): boolean =>
  pattern !== null && pattern !== undefined && matchAll(pattern, part, isStar, isMatch);

const matchParts = (patterns: readonly PartPattern[], parts: readonly string[]): boolean => {
  // At the end, `**` stands for at least one part.
  const isBelow = patterns.at(-1) === null && patterns.length > 1;
  const folded = isBelow ? [...patterns.slice(0, -1), STAR, null] : patterns;
  return matchAll(folded, parts, (one) => one === null, matchPart);
};
const STAR: PartPattern = [{ kind: 'star' }];

/** Removes blanks at the end of a line. One after a backslash counts. */
const trimLine = (line: string): string => {
  let end = line.endsWith('\r') ? line.length - 1 : line.length;
  const last = end;
  while (line[end - 1] === ' ' || line[end - 1] === '\t') end--;
  return line.slice(0, line[end - 1] === '\\' ? Math.min(end + 1, last) : end);
};

/** Maximum length of a rule: no path is as long. */
const MAX_RULE = 4_096;

/** Returns the rule of a line; null for a blank line, a comment or a pattern without a match. */
const parseRule = (line: string): IgnoreRule | null => {
  const text = trimLine(line);
  if (text.length > MAX_RULE) return null;
  if (text === '' || text.startsWith('#')) return null;
  const isNegated = text.startsWith('!');
  const whole = isNegated ? text.slice(1) : text;
  const isFolderOnly = whole.endsWith('/');
  const pattern = isFolderOnly ? whole.slice(0, -1) : whole;
  if (pattern === '') return null;
  const names = pattern.replace(/^\//, '').split('/');
  const parts: PartPattern[] = pattern.includes('/') ? [] : [null];
  for (const name of names) {
    const tokens = name === '**' ? null : tokensOf(name);
    if (tokens === undefined) return null;
    parts.push(tokens);
  }
  return { isNegated, isFolderOnly, parts };
};

/** Returns the rules of a `.gitignore`, the last and strongest first. */
export const parseIgnoreFile = (text: string): readonly IgnoreRule[] =>
  text
    .split('\n')
    .flatMap((line) => parseRule(line) ?? [])
    .slice(0, MAX_RULES)
    .reverse();

/** Rules of the `.gitignore` files of a tree, by the folder of each file. */
export class IgnoreRules {
  private readonly folders = new Map<string, boolean>();

  constructor(private readonly files: ReadonlyMap<string, readonly IgnoreRule[]>) {}

  /**
   * Returns true if a file or a folder above it is ignored. Folders down to `root` are not asked: a
   * caller that names an ignored folder wants its files.
   */
  isIgnored(path: string, root = ''): boolean {
    if (this.files.size === 0) return false;
    const start = root === '' ? 0 : root.length + 1;
    for (let end = path.indexOf('/', start); end !== -1; end = path.indexOf('/', end + 1))
      if (this.isFolderIgnored(path.slice(0, end))) return true;
    return this.decide(path, false);
  }

  private isFolderIgnored(folder: string): boolean {
    const known = this.folders.get(folder);
    if (known !== undefined) return known;
    const isIgnored = this.decide(folder, true);
    this.folders.set(folder, isIgnored);
    return isIgnored;
  }

  /** The rules of the nearest folder are stronger than those above it. */
  private decide(path: string, isFolder: boolean): boolean {
    for (let end = path.lastIndexOf('/'); ; end = path.lastIndexOf('/', end - 1)) {
      const folder = end === -1 ? '' : path.slice(0, end);
      const rules = this.files.get(folder);
      const parts = rules && path.slice(end + 1).split('/');
      const rule =
        parts && rules.find((one) => (isFolder || !one.isFolderOnly) && matchParts(one.parts, parts));
      if (rule) return !rule.isNegated;
      if (end <= 0) return false;
    }
  }
}
