import type { ResultMatch, ResultMatches, SearchResultJob } from '../text-work.js';

/** Bytes before a match and after it that are shown. */
const AROUND = 120;
const LINE_FEED = 10;

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** Returns the text around a match, of whole characters. */
const textAround = (bytes: Buffer, at: number, length: number): string => {
  let from = Math.max(0, at - AROUND);
  let to = Math.min(bytes.length, at + length + AROUND);
  while (from < at && isContinuation(bytes[from])) from++;
  while (to > at + length && isContinuation(bytes[to])) to--;
  return bytes.toString('utf8', from, to).replaceAll('\n', '⏎');
};

/** Counts the line feeds before each match once. */
const countFeeds = (bytes: Buffer, from: number, to: number): number => {
  let feeds = 0;
  for (let at = bytes.indexOf(LINE_FEED, from); at !== -1 && at < to; at = bytes.indexOf(LINE_FEED, at + 1))
    feeds++;
  return feeds;
};

/** Finds a text in the bytes of a result, in a thread: each place that does not overlap another. */
export const searchResult = ({ bytes, text, from, limit }: SearchResultJob): ResultMatches => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const wanted = Buffer.from(text);
  const matches: ResultMatch[] = [];
  let [line, counted] = [1, 0];
  for (let at = buffer.indexOf(wanted, from); at !== -1; at = buffer.indexOf(wanted, at + wanted.length)) {
    if (matches.length === limit) return { matches, next: at };
    line += countFeeds(buffer, counted, at);
    counted = at;
    matches.push({ at, line, text: textAround(buffer, at, wanted.length) });
  }
  return { matches, next: null };
};
