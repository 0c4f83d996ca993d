/** Returns the end of the longest part: after a line, else after a word, else within a word. */
const endOf = (text: string, max: number): number => {
  const head = text.slice(0, max);
  for (const mark of ['\n\n', '\n', ' ']) {
    const at = head.lastIndexOf(mark);
    if (at > max / 2) return at + mark.length;
  }
  // Half of a UTF-16 pair is no character.
  const last = text.charCodeAt(max - 1);
  return last >= 0xd800 && last <= 0xdbff ? max - 1 : max;
};

/**
 * Splits a text into parts of at most `max` UTF-16 units, and at most `maxParts` of them. The last
 * one then ends with an ellipsis.
 */
export const splitText = (text: string, max: number, maxParts: number): string[] => {
  const parts: string[] = [];
  let rest = text.trim();
  while (rest.length > max && parts.length < maxParts - 1) {
    const end = endOf(rest, max);
    parts.push(rest.slice(0, end).trimEnd());
    rest = rest.slice(end).trimStart();
  }
  if (rest.length > max) rest = `${rest.slice(0, endOf(rest, max - 1)).trimEnd()}…`;
  if (rest !== '') parts.push(rest);
  return parts;
};
