/** Returns the number of UTF-16 units at one end of a text that have at most `bytes` in UTF-8. */
const unitsWithin = (text: string, bytes: number, isEnd: boolean): number => {
  let room = bytes;
  for (let count = 0; count < text.length; count++) {
    const unit = text.charCodeAt(isEnd ? text.length - 1 - count : count);
    room -= unit <= 0x7f ? 1 : unit <= 0x7ff || (unit >= 0xd800 && unit <= 0xdfff) ? 2 : 3;
    if (room < 0) return count;
  }
  return text.length;
};

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;

/** Part of the room that the beginning of a clipped text has. */
const HEAD_SHARE = 2 / 3;

/**
 * Clips a text to about `bytes` in UTF-8: its beginning, the note, and its end. Splits no
 * character. A text that fits is returned as it is.
 */
export const clipMiddle = (text: string, bytes: number, note: string): string => {
  if (text.length <= bytes && Buffer.byteLength(text) <= bytes) return text;
  const room = Math.max(0, bytes - Buffer.byteLength(note));
  let head = unitsWithin(text, Math.floor(room * HEAD_SHARE), false);
  let tail = unitsWithin(text, room - Math.floor(room * HEAD_SHARE), true);
  if (head > 0 && isHighSurrogate(text.charCodeAt(head - 1))) head -= 1;
  if (tail > 0 && tail < text.length && isHighSurrogate(text.charCodeAt(text.length - tail - 1))) tail -= 1;
  return `${text.slice(0, head)}${note}${text.slice(text.length - tail)}`;
};

/** Returns the text in place of the part of a result that is left out, for the model. */
export const leftOutNote = (callId: string, size: number): string =>
  `\n[… left out of ${size} bytes: read_result and search_result read them, result "${callId}"]\n`;
