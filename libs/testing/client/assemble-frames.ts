import type { StreamedFrame } from './socket-client.js';

/** What a `restart` makes void: what its attempt had sent. */
const voidRanges = (frames: readonly StreamedFrame[]): readonly (readonly [from: number, to: number])[] =>
  frames
    .filter(({ event }) => event === 'restart')
    .map(({ data, offset }) => [(data as { offset: number }).offset, offset]);

/** The frames that count in the end: those that no `restart` makes void. */
export const standing = (frames: readonly StreamedFrame[]): StreamedFrame[] => {
  const ranges = voidRanges(frames);
  return frames.filter(({ offset }) => !ranges.some(([from, to]) => offset >= from && offset < to));
};

/**
 * What a client has of a session, as text: a line for each frame that stands. Two readers of one session have the
 * same, byte for byte, however often each was cut off.
 */
export const assembleFrames = (frames: readonly StreamedFrame[]): string =>
  standing(frames)
    .map(({ event, data, offset }) => `${offset} ${event} ${JSON.stringify(data)}\n`)
    .join('');

/** The text that a client shows in the end. */
export const textOf = (frames: readonly StreamedFrame[]): string =>
  standing(frames)
    .filter(({ event }) => event === 'text')
    .map(({ data }) => data)
    .join('');
