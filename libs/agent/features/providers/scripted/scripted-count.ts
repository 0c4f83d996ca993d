import type { ModelPrompt } from '@antiphon/agent-domain';

/** This provider's tokenizer: four UTF-8 bytes a token, rounded up. */
export const countTokens = (text: string): number => Math.ceil(Buffer.byteLength(text) / 4);

/** Exactly what a request counts; it is also the bound, since nothing here is estimated. */
export const countPrompt = ({ system, messages, tools }: ModelPrompt): number =>
  countTokens(JSON.stringify([system, messages, tools]));
