/**
 * Documents that describe an agent, in order of precedence: an earlier one overrides a later one.
 */
export const IDENTITY_FILES = ['SOUL.md', 'AGENT.md', 'IDENTITY.md', 'USER.md'] as const;
export type IdentityFile = (typeof IDENTITY_FILES)[number];

/** A document with its unprocessed text. */
export interface IdentityDocument {
  readonly file: IdentityFile;
  readonly text: string;
}

/** Control characters except tab and line break. */
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

/** Normalises line breaks; removes control characters and blank lines at both ends. */
export const normalizeDocument = (text: string): string =>
  text
    .replace(/^\ufeff/, '')
    .replace(/\r\n?/g, '\n')
    .replace(CONTROLS, '')
    .toWellFormed()
    .replace(/^(?:[ \t]*\n)+/, '')
    .trimEnd();

/** Maximum compared length of a heading: bounds the cost of comparing. */
const MAX_NAME_CHARS = 200;

/** Normalises a heading or key: without case, emphasis, extra spaces and closing marks. */
export const normalizeName = (name: string): string =>
  name
    .slice(0, MAX_NAME_CHARS)
    .normalize('NFKC')
    .replace(/[*_`]/g, '')
    .replace(/\s+/g, ' ')
    .replace(/(?<![\s:#])[\s:#]+$/, '')
    .trim()
    .toLowerCase();

/** A `Name: Ada` entry with its lines. */
export interface Entry {
  readonly key: string;
  readonly lines: readonly string[];
}

const LIST_ITEM = /^[ \t]{0,3}[-*+][ \t]+/;
/** Matches a key of at most forty characters; the colon may be inside or after the emphasis. */
const KEY_LINE = /^(?:\*\*|__)?([^\s:*_`][^:*_`]{0,39})(?:\*\*|__)?:(?:\*\*|__)?[ \t]+\S/;
const MAX_WORDS = 4;
/** Maximum number of lines of a text that may be entries: bounds the cost of comparing. */
const MAX_ENTRY_LINES = 2_000;

const keyOf = (line: string): string | null => {
  const key = KEY_LINE.exec(line)?.[1];
  return key !== undefined && key.trim().split(/\s+/).length <= MAX_WORDS ? normalizeName(key) : null;
};

/**
 * Returns a line's key. A plain `Name: Ada` counts only outside of headings, where it is no
 * sentence.
 */
const entryKey = (line: string, plain: boolean): string | null => {
  const item = LIST_ITEM.exec(line)?.[0];
  if (item !== undefined) return keyOf(line.slice(item.length));
  return plain ? keyOf(line) : null;
};

/** Reads the entries of a text; returns null if it has other lines, or too many. */
export const readEntries = (lines: readonly string[], plain: boolean): Entry[] | null => {
  if (lines.length > MAX_ENTRY_LINES) return null;
  const entries: Entry[] = [];
  for (const line of lines.filter((text) => text.trim() !== '')) {
    const key = entryKey(line, plain);
    if (key === null) return null;
    entries.push({ key, lines: [line] });
  }
  return entries.length > 0 ? entries : null;
};

const FENCE = /^---[ \t]*$/;
const FRONT_KEY = /^([A-Za-z0-9_][\w .-]{0,39}):(?:[ \t]|$)/;

interface FrontMatter {
  readonly entries: readonly Entry[];
  /** Number of its lines, both fences included. */
  readonly length: number;
}

/**
 * Reads the front matter of a document; returns null where there is none. Only its first level is
 * read: indented lines belong to the key above. `unclosed` and `unreadable` front matter is plain
 * text.
 */
export const readFrontMatter = (lines: readonly string[]): FrontMatter | 'unclosed' | 'unreadable' | null => {
  if (!FENCE.test(lines[0] ?? '')) return null;
  const end = lines.findIndex((line, index) => index > 0 && FENCE.test(line));
  if (end === -1) return FRONT_KEY.test(lines[1] ?? '') ? 'unclosed' : null;
  const entries: { key: string; lines: string[] }[] = [];
  for (const line of lines.slice(1, end)) {
    const key = FRONT_KEY.exec(line)?.[1];
    const last = entries.at(-1);
    if (key !== undefined) entries.push({ key: normalizeName(key), lines: [line] });
    else if (line.trim() === '' || line.startsWith('#')) continue;
    else if (last && /^[ \t-]/.test(line)) last.lines.push(line);
    else return entries.length > 0 ? 'unreadable' : null;
  }
  return { entries, length: end + 1 };
};
