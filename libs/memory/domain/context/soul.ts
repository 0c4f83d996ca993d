import { estimateTokens } from './estimate-tokens.js';

/** Who an agent is, in Markdown; always first in its context. */
export interface Soul {
  readonly text: string;
  /** Counted once, when it is loaded. */
  readonly tokens: number;
}

/** A document as a soul; null when it says nothing. */
export const toSoul = (document: string): Soul | null => {
  const text = document.replaceAll('\r\n', '\n').trim();
  return text === '' ? null : { text, tokens: estimateTokens(text) };
};

/** As many whole lines from its beginning as the budget holds; null when not even the first fits. */
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
