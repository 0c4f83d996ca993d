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
  if (!text.isWellFormed()) throw invalid('FILE.INVALID_TEXT', `\`${name}\` has half of a character pair`);
  return ENCODER.encode(text);
};

/**
 * Replaces the one exact occurrence of `old`. All other bytes stay as they are. Throws
 * `FILE.NO_MATCH` with the nearest lines, or `FILE.AMBIGUOUS` with all lines.
 */
export const editBytes = (bytes: Uint8Array, edit: TextEdit): Uint8Array => {
  const old = encode(edit.old, 'old');
  const added = encode(edit.new, 'new');
  if (old.length === 0) throw invalid('FILE.INVALID_TEXT', '`old` is empty');
  if (edit.old === edit.new) throw invalid('FILE.INVALID_TEXT', '`old` and `new` are equal');
  const places = findSequence(bytes, old, MAX_LISTED + 1);
  const [at] = places;
  if (at === undefined) {
    const difference = findDifference(bytes, edit.old);
    throw notFound('FILE.NO_MATCH', `\`old\` does not occur. ${difference.message}`, {
      data: {
        lines: difference.lines,
        ...(difference.proposal === null ? {} : { proposal: difference.proposal }),
      },
    });
  }
  if (places.length > 1) {
    const lines = linesAt(bytes, places.slice(0, MAX_LISTED));
    const more = places.length > MAX_LISTED ? ' and more' : '';
    throw conflict(
      'FILE.AMBIGUOUS',
      `\`old\` occurs at the lines ${lines.join(', ')}${more}; give more of the text around it`,
      {
        data: { lines },
      },
    );
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
  throw rejected(
    'FILE.LARGE_REMOVAL',
    `this removes ${removed} of ${lines} lines of "${path}"; to confirm, repeat it with "removes": ${removed}`,
    { data: { path, removed, lines } },
  );
};
