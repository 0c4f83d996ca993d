/** Cautious for prose, about right for code and for scripts of three bytes a character; the agent sizes contexts by the same. */
const BYTES_PER_TOKEN = 3;

/** A deterministic estimate of a text's tokens, on the high side. */
export const estimateTokens = (text: string): number => {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    // A surrogate pair is four bytes in UTF-8: two for each half.
    if (unit > 0x7f) bytes += unit > 0x7ff && (unit < 0xd800 || unit > 0xdfff) ? 2 : 1;
  }
  return Math.ceil(bytes / BYTES_PER_TOKEN);
};
