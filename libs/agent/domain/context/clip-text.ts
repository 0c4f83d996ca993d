import { BYTES_PER_TOKEN } from './estimate-tokens.js';

/** Half a surrogate pair is no character. */
const wholeEnd = (text: string, end: number): number => {
  const last = text.charCodeAt(end - 1);
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
};

const cut = (text: string, end: number): string =>
  `${text.slice(0, end)}… [clipped: ${end} of ${text.length} characters]`;

/** The first `max` UTF-16 units of a text, and a note of how much there was. */
export const clipText = (text: string, max: number): string =>
  text.length <= max ? text : cut(text, wholeEnd(text, max));

/** As much of a text as `tokens` hold by the estimate, and, beyond them, a note of how much there was. */
export const clipToTokens = (text: string, tokens: number): string => {
  let room = tokens * BYTES_PER_TOKEN;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    room -= unit <= 0x7f ? 1 : unit <= 0x7ff || (unit >= 0xd800 && unit <= 0xdfff) ? 2 : 3;
    if (room < 0) return cut(text, wholeEnd(text, i));
  }
  return text;
};
