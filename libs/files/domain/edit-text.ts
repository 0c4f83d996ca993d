import { causedError } from '@antiphon/contracts/causes';
import { conflict, invalid, notFound, rejected } from '@antiphon/kernel';
import { findSequence } from './find-sequence.js';
import { findDifference } from './near-match.js';

/** An exact replacement of bytes. */
export interface TextEdit {
  readonly old: string;
  readonly new: string;
}

const ENCODER = new TextEncoder();
/** Maximum number of lines that an error lists. */
const MAX_LISTED = 20;

/** Returns the number of line feeds of bytes, from one index to another. */
const countLineFeeds = (bytes: Uint8Array, from: number, to: number): number => {
  let count = 0;
  for (let at = from; at < to; at++) if (bytes[at] === 10) count++;
  return count;
};

/** Returns the number of lines. A line feed at the end begins no further line. */
export const countLines = (bytes: Uint8Array): number =>
  bytes.length === 0 ? 0 : countLineFeeds(bytes, 0, bytes.length) + (bytes.at(-1) === 10 ? 0 : 1);

const linesAt = (bytes: Uint8Array, places: readonly number[]): number[] => {
  let line = 1;
  let from = 0;
  return places.map((place) => {
    line += countLineFeeds(bytes, from, place);
    from = place;
    return line;
  });
};

const splice = (bytes: Uint8Array, at: number, removed: number, added: Uint8Array): Uint8Array => {
  const edited = new Uint8Array(bytes.length - removed + added.length);
  edited.set(bytes.subarray(0, at));
  edited.set(added, at);
  edited.set(bytes.subarray(at + removed), at + added.length);
  return edited;
};

const encode = (text: string, name: string): Uint8Array => {
  if (!text.isWellFormed())
    throw causedError(invalid, 'FILE.INVALID_TEXT', { kind: 'edit_not_well_formed', name });
  return ENCODER.encode(text);
};

/**
 * Replaces the one exact occurrence of `old`. All other bytes stay as they are. Throws
 * `FILE.NO_MATCH` with the nearest lines, or `FILE.AMBIGUOUS` with all lines.
 */
export const editBytes = (bytes: Uint8Array, edit: TextEdit): Uint8Array => {
  const old = encode(edit.old, 'old');
  const added = encode(edit.new, 'new');
  if (old.length === 0) throw causedError(invalid, 'FILE.INVALID_TEXT', { kind: 'edit_of_nothing' });
  if (edit.old === edit.new) throw causedError(invalid, 'FILE.INVALID_TEXT', { kind: 'edit_equal' });
  const places = findSequence(bytes, old, MAX_LISTED + 1);
  const [at] = places;
  if (at === undefined) {
    const { near, lines, proposal } = findDifference(bytes, edit.old);
    const data = { lines, ...(proposal === null ? {} : { proposal }) };
    throw causedError(notFound, 'FILE.NO_MATCH', { kind: 'edit_no_match', near }, data);
  }
  if (places.length > 1) {
    const lines = linesAt(bytes, places.slice(0, MAX_LISTED));
    const hasMore = places.length > MAX_LISTED ? 1 : 0;
    const cause = { kind: 'edit_ambiguous', lines: lines.join(', '), hasMore } as const;
    throw causedError(conflict, 'FILE.AMBIGUOUS', cause, { lines });
  }
  return splice(bytes, at, old.length, added);
};

/** Applies edits in order, each to the result of the one before: all of them, or an error. */
export const editAll = (bytes: Uint8Array, edits: readonly TextEdit[]): Uint8Array =>
  edits.reduce(editBytes, bytes);

/** Files of at most this many lines may lose any part of them. */
const SMALL_LINES = 50;

/**
 * Refuses a change that removes over half of the lines of a long file, unless it names their
 * number.
 */
export const checkRemoval = (path: string, before: Uint8Array, after: Uint8Array, removes?: number): void => {
  const lines = countLines(before);
  const removed = lines - countLines(after);
  if (lines <= SMALL_LINES || removed * 2 <= lines || removes === removed) return;
  const data = { path, removed, lines };
  throw causedError(rejected, 'FILE.LARGE_REMOVAL', { kind: 'edit_removes_most', ...data }, data);
};
