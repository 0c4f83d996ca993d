import { causedError } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import { invalid } from '@antiphon/kernel';

/** Maximum length of a path and of one part of it, bytes of UTF-8. */
export const MAX_PATH_BYTES = 1_024;
export const MAX_PART_BYTES = 255;
/** Maximum length of a path before it is composed, UTF-16 units: a letter has some marks. */
const MAX_GIVEN = 4 * MAX_PATH_BYTES;

const ENCODER = new TextEncoder();
const bytesOf = (text: string): number => ENCODER.encode(text).length;

/** Names that Windows gives to devices, with any extension. */
const DEVICE = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?$/i;
/** Controls, invisible formatting, lone surrogates, line separators. Joiners of emoji are allowed. */
const INVISIBLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]|(?![\u200c\u200d])\p{Cf}/u;
const RESERVED = /[\\<>:"|?*]/;
const ENCODED = /%(2e|2f|5c|00)/i;

/** Returns the code of a problem; null without one. */
const problemOfPart = (part: string): string | null => {
  if (part === '') return 'empty_part';
  if (part === '.' || part === '..') return 'dots';
  if (INVISIBLE.test(part)) return 'invisible';
  if (RESERVED.test(part)) return 'reserved';
  if (ENCODED.test(part)) return 'encoded';
  if (/^\s|[\s.]$/u.test(part)) return 'blank_end';
  if (DEVICE.test(part)) return 'device';
  if (bytesOf(part) > MAX_PART_BYTES) return 'part_too_long';
  // Other forms of dots and slashes become these in a program that folds compatibility characters.
  const folded = part.normalize('NFKC');
  if (/[/\\\0]/.test(folded) || /^\.+$/.test(folded)) return 'other_form';
  return null;
};

type Refused = Pick<Extract<Cause, { kind: 'file_path_refused' }>, 'problem' | 'detail'>;

const problemOf = (path: string): Refused | null => {
  if (path.startsWith('/')) return { problem: 'absolute', detail: '' };
  if (path.startsWith('~')) return { problem: 'home', detail: '' };
  if (path.length > MAX_PATH_BYTES || bytesOf(path) > MAX_PATH_BYTES)
    return { problem: 'too_long', detail: String(MAX_PATH_BYTES) };
  for (const part of path.split('/')) {
    const problem = problemOfPart(part);
    if (problem === 'part_too_long') return { problem, detail: String(MAX_PART_BYTES) };
    if (problem !== null) return { problem, detail: problem === 'dots' ? part : '' };
  }
  return null;
};

/**
 * Returns a path in NFC. Throws `FILE.INVALID_PATH` for a path that could mean another place, or
 * another file on another system.
 */
export const normalizePath = (path: string): string => {
  // The order of many marks costs the square of their number.
  const normalized = path.length > MAX_GIVEN ? path : path.normalize('NFC');
  const problem = problemOf(normalized);
  if (problem !== null) {
    const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path;
    throw causedError(invalid, 'FILE.INVALID_PATH', { kind: 'file_path_refused', path: shown, ...problem });
  }
  return normalized;
};

/** Returns the path of a folder, where the empty path, `.` and `/` are the root. */
export const normalizeFolder = (path: string): string =>
  path === '' || path === '.' || path === '/' ? '' : normalizePath(path.replace(/\/$/, ''));

/** Returns a name that is equal for paths that a file system may treat as the same. */
export const foldCase = (path: string): string =>
  path.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC');

/** Returns the folders above a path, the outermost one first. */
export const foldersOf = (path: string): string[] => {
  const folders: string[] = [];
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) folders.push(path.slice(0, at));
  return folders;
};

/** True if a path is the folder, or lies below it. The root has every path. */
export const isBelow = (path: string, folder: string): boolean =>
  folder === '' || path === folder || path.startsWith(`${folder}/`);

/** Ending of files that are built on read. */
const VIRTUAL_ENDING = '.chat';

/** True for the path of a file that is built on read, which no tool writes or removes. */
export const isVirtualPath = (path: string): boolean => foldCase(path).endsWith(VIRTUAL_ENDING);

/** Compares paths by code unit, so that every process lists them in the same order. */
export const comparePaths = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
