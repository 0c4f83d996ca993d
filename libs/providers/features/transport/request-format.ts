import type { ModelMessage, ModelPrompt } from '@antiphon/providers-domain';

/** Tokens that a chat template may add to the bytes of a request's JSON. */
const TEMPLATE_OVERHEAD = 64;

/**
 * Tokens that a vendor may add for tools. Anthropic documents up to 735 tokens of system prompt;
 * the others stay far below.
 */
const TOOLS_OVERHEAD = 1_024;

/**
 * Returns an upper bound of a rendered request in tokens: its UTF-8 bytes plus the vendor's
 * overheads. No token of a byte-level tokenizer is shorter than a byte.
 */
export const boundOfBody = (json: string, hasTools: boolean): number =>
  Buffer.byteLength(json) + TEMPLATE_OVERHEAD + (hasTools ? TOOLS_OVERHEAD : 0);

type Rendered = Pick<ModelPrompt, 'model' | 'system' | 'tools'> & { readonly json: string };

/** Renders the body of a prompt as JSON, with fields that the prompt does not determine. */
export type RenderBody = (prompt: ModelPrompt, fields: Readonly<Record<string, unknown>>) => string;

/**
 * Creates a renderer that renders a prompt once: for its bound, while the call is being committed,
 * and for the request. `render` gives at least one field.
 */
export const createBodyRenderer = (render: (prompt: ModelPrompt) => object): RenderBody => {
  const rendered = new WeakMap<ModelPrompt['messages'], Rendered>();
  const jsonOf = (prompt: ModelPrompt): string => {
    const { model, system, tools, messages } = prompt;
    const known = rendered.get(messages);
    if (known?.model === model && known.system === system && known.tools === tools) return known.json;
    const json = JSON.stringify(render(prompt));
    rendered.set(messages, { model, system, tools, json });
    return json;
  };
  return (prompt, fields) => `${JSON.stringify(fields).slice(0, -1)},${jsonOf(prompt).slice(1)}`;
};

/** Ids of tool calls that every vendor accepts. */
const PORTABLE_ID = /^[A-Za-z0-9_-]{1,40}$/;

/**
 * Returns a function that renames tool call ids for a request. An id that not every vendor accepts
 * is replaced by its position, so that a conversation can move to the fallback provider.
 */
export const portableIds = (messages: readonly ModelMessage[]): ((id: string) => string) => {
  const ids = new Set(
    messages.flatMap((message) =>
      message.role === 'assistant' ? message.toolCalls.map((call) => call.id) : [],
    ),
  );
  const renamed = new Map<string, string>();
  let number = 0;
  for (const id of ids) {
    if (PORTABLE_ID.test(id)) continue;
    let name: string;
    do name = `call_${(number += 1)}`;
    while (ids.has(name));
    renamed.set(id, name);
  }
  return (id) => renamed.get(id) ?? id;
};
