/** Bytes of prose and of programs, the most frequent first. Any other ASCII byte is less frequent. */
const FREQUENT = Buffer.from(' etaoinsrhlcdumpf\ngy.b_w(),;=v"-:/0k1\'2');
/** First bytes of characters beyond ASCII: a text in another script has one for each letter. */
const FIRST_OF_CHARACTER = 0xc0;
/** Minimum length of a tail, if the text is longer. Shorter ones are found in most files. */
const MIN_TAIL = 3;

const rankOf = (byte: number): number => {
  if (byte >= FIRST_OF_CHARACTER) return -1;
  const rank = FREQUENT.indexOf(byte);
  return rank === -1 ? FREQUENT.length : rank;
};

/**
 * Returns the end of a text that begins with its rarest byte. PostgreSQL compares a text at each
 * place of its first byte, so it finds this end in less time. A body without it lacks the text too.
 */
export const rareTailOf = (text: Uint8Array): Uint8Array => {
  let start = 0;
  for (let at = 1; at <= text.length - MIN_TAIL; at++)
    if (rankOf(text[at] ?? 0) > rankOf(text[start] ?? 0)) start = at;
  return text.subarray(start);
};
