/** Returns `end`, or one less where it would split a surrogate pair. */
const toCharacterBoundary = (text: string, end: number): number => {
  const last = text.charCodeAt(end - 1);
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
};

/** Clips a text at the character boundary before `at` and appends a note with its whole length. */
export const clipAt = (text: string, at: number): string => {
  const end = toCharacterBoundary(text, at);
  return `${text.slice(0, end)}… [clipped: ${end} of ${text.length} characters]`;
};

/** Clips a text to `max` UTF-16 units and appends a note with its whole length. */
export const clipText = (text: string, max: number): string =>
  text.length <= max ? text : clipAt(text, max);
