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

const problemOfPart = (part: string): string | null => {
  if (part === '') return 'it has an empty part';
  if (part === '.' || part === '..') return `it has the part "${part}"`;
  if (INVISIBLE.test(part)) return 'it has a control or invisible character';
  if (RESERVED.test(part)) return 'it has one of \\ < > : " | ? *';
  if (ENCODED.test(part)) return 'it has a percent-encoded dot, slash or zero';
  if (/^\s|[\s.]$/u.test(part)) return 'a part begins with a space, or ends with a space or a dot';
  if (DEVICE.test(part)) return 'a part is the name of a device';
  if (bytesOf(part) > MAX_PART_BYTES) return `a part has over ${MAX_PART_BYTES} bytes`;
  // Other forms of dots and slashes become these in a program that folds compatibility characters.
  const folded = part.normalize('NFKC');
  if (/[/\\\0]/.test(folded) || /^\.+$/.test(folded)) return 'it has another form of a dot or slash';
  return null;
};

const problemOf = (path: string): string | null => {
  if (path.startsWith('/')) return 'it is absolute; paths begin at the root of the workspace';
  if (path.startsWith('~')) return 'it begins with ~';
  if (path.length > MAX_PATH_BYTES || bytesOf(path) > MAX_PATH_BYTES)
    return `it has over ${MAX_PATH_BYTES} bytes`;
  for (const part of path.split('/')) {
    const problem = problemOfPart(part);
    if (problem !== null) return problem;
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
    const shown = JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
    throw invalid('FILE.INVALID_PATH', `the path ${shown} is not allowed: ${problem}`);
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
