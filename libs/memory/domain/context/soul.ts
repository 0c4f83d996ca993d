/**
 * High for prose, about right for code and for scripts of three bytes a character. The agent sizes
 * contexts by the same value.
 */
const BYTES_PER_TOKEN = 3;

/** Estimates a text's tokens: deterministic, and on the high side. */
export const estimateTokens = (text: string): number => {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    // A surrogate pair is four bytes in UTF-8: two for each half.
    if (unit > 0x7f) bytes += unit > 0x7ff && (unit < 0xd800 || unit > 0xdfff) ? 2 : 1;
  }
  return Math.ceil(bytes / BYTES_PER_TOKEN);
};

/** Description of an agent, in Markdown; always first in its context. */
export interface Soul {
  readonly text: string;
  /** Estimated once, when the soul is loaded. */
  readonly tokens: number;
}

/** Makes a soul of a document; returns null for a blank one. */
export const toSoul = (document: string): Soul | null => {
  const text = document.replaceAll('\r\n', '\n').trim();
  return text === '' ? null : { text, tokens: estimateTokens(text) };
};

/** Cuts a soul to whole lines within the budget; returns null when not even the first line fits. */
export const fitSoul = (soul: Soul | null, budgetTokens: number): Soul | null => {
  if (soul === null || soul.tokens <= budgetTokens) return soul;
  const kept: string[] = [];
  let tokens = 0;
  for (const line of soul.text.split('\n')) {
    tokens += estimateTokens(`${line}\n`);
    if (tokens > budgetTokens) break;
    kept.push(line);
  }
  return toSoul(kept.join('\n'));
};
