/** What a chat template may wrap around a request beyond the bytes of its JSON, in tokens. */
const TEMPLATE_OVERHEAD = 64;

/**
 * What vendors put before the tools that they are given: Anthropic documents up to 735 tokens of hidden system
 * prompt, the others stay far below.
 */
const TOOLS_OVERHEAD = 1_024;

/**
 * Upper bound of a rendered request in tokens: its UTF-8 bytes, since no token of a byte-level tokenizer is
 * shorter than a byte (JSON's own quotes and keys cover the template's separators), plus the vendor's overheads.
 */
export const boundOfBody = (body: unknown, hasTools: boolean): number =>
  Buffer.byteLength(JSON.stringify(body)) + TEMPLATE_OVERHEAD + (hasTools ? TOOLS_OVERHEAD : 0);
