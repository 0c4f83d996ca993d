import { normalizeName } from './identity-document.js';

/** `Name: Ada`, with the lines that belong to it. */
export interface Entry {
  readonly key: string;
  readonly lines: readonly string[];
}

const LIST_ITEM = /^[ \t]{0,3}[-*+][ \t]+(.*)$/;
/** At most forty characters before the colon, which may stand within the emphasis or after it. */
const KEY_LINE = /^(?:\*\*|__)?([^\s:*_`][^:*_`]{0,39})(?:\*\*|__)?:(?:\*\*|__)?[ \t]+\S/;
const MAX_WORDS = 4;

const keyOf = (line: string): string | null => {
  const key = KEY_LINE.exec(line)?.[1];
  return key !== undefined && key.trim().split(/\s+/).length <= MAX_WORDS ? normalizeName(key) : null;
};

/** Plain `Name: Ada` counts only where there is no heading to say what it belongs to: elsewhere it may be a sentence. */
const entryKey = (line: string, plain: boolean): string | null => {
  const item = LIST_ITEM.exec(line)?.[1];
  if (item !== undefined) return keyOf(item);
  return plain ? keyOf(line) : null;
};

/** The entries of a text that has nothing else, or null. */
export const readEntries = (lines: readonly string[], plain: boolean): Entry[] | null => {
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
  /** Lines of the document that it takes, both fences included. */
  readonly length: number;
}

/**
 * The front matter of a document, or null where there is none. Only its first level is read: what is indented below
 * a key belongs to that key. `unclosed` and `unreadable` leave the document as the text that it is.
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
