import { boundOfFiles, filesOf } from '@antiphon/providers-domain';
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
 * overheads. No token of a byte-level tokenizer is shorter than a byte. An image or a document
 * counts by its vendor's rule instead of its bytes.
 */
export const boundOfBody = (json: string, prompt: ModelPrompt): number =>
  Buffer.byteLength(json) +
  TEMPLATE_OVERHEAD +
  (prompt.tools.length > 0 ? TOOLS_OVERHEAD : 0) +
  boundOfFiles(filesOf(prompt), prompt.model);

type Rendered<P> = Pick<ModelPrompt, 'model' | 'system' | 'tools'> & {
  readonly parameters: P;
  readonly json: string;
};

/** Renders the body of a prompt as JSON, with fields that the prompt does not determine. */
export type RenderBody<P> = (
  prompt: ModelPrompt,
  parameters: P,
  fields: Readonly<Record<string, unknown>>,
) => string;

/**
 * Creates a renderer that renders a prompt once: for its bound, while the call is being committed,
 * and for the request. `render` gives at least one field, and so does the caller.
 */
export const createBodyRenderer = <P>(
  render: (prompt: ModelPrompt, parameters: P) => object,
): RenderBody<P> => {
  const rendered = new WeakMap<ModelPrompt['messages'], Rendered<P>>();
  const jsonOf = (prompt: ModelPrompt, parameters: P): string => {
    const { model, system, tools, messages } = prompt;
    const known = rendered.get(messages);
    const isSame = known?.model === model && known.system === system && known.tools === tools;
    if (isSame && known.parameters === parameters) return known.json;
    const json = JSON.stringify(render(prompt, parameters));
    rendered.set(messages, { model, system, tools, parameters, json });
    return json;
  };
  return (prompt, parameters, fields) =>
    `${JSON.stringify(fields).slice(0, -1)},${jsonOf(prompt, parameters).slice(1)}`;
};

/** Ids of tool calls that every vendor accepts. */
const PORTABLE_ID = /^[A-Za-z0-9_-]{1,40}$/;

export const isPortableId = (id: string): boolean => PORTABLE_ID.test(id);

/**
 * Returns a function that renames tool call ids for a request. An id that not every vendor accepts
 * is replaced by its position, so that a conversation can move to the fallback provider.
 *
 * @param own the model's own ids, by the ids of the messages. It gets them back unless they repeat
 */
export const portableIds = (
  messages: readonly ModelMessage[],
  own: ReadonlyMap<string, string> = new Map(),
): ((id: string) => string) => {
  const ids = new Set(
    messages.flatMap((message) =>
      message.role === 'assistant' ? message.toolCalls.map((call) => call.id) : [],
    ),
  );
  const renamed = new Map<string, string>();
  const used = new Set(ids);
  for (const [id, given] of own) {
    if (used.has(given)) continue;
    used.add(given);
    renamed.set(id, given);
  }
  let number = 0;
  for (const id of ids) {
    if (renamed.has(id) || isPortableId(id)) continue;
    let name: string;
    do name = `call_${(number += 1)}`;
    while (used.has(name));
    renamed.set(id, name);
  }
  return (id) => renamed.get(id) ?? id;
};

const MAX_NAME = 64;

/** Returns a tool's name as every vendor accepts it. A model may have made a name up. */
export const portableName = (name: string): string =>
  name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, MAX_NAME) || '_';

/**
 * Puts each tool call into a message of its own, its result after it. The first message of an
 * answer keeps the text.
 */
export const splitCalls = (messages: readonly ModelMessage[]): readonly ModelMessage[] =>
  messages.flatMap((message, index): readonly ModelMessage[] => {
    const next = messages[index + 1];
    if (message.role === 'tool') return [];
    if (message.role !== 'assistant' || message.toolCalls.length === 0 || next?.role !== 'tool')
      return [message];
    return message.toolCalls.flatMap((call, at): ModelMessage[] => [
      at === 0 ? { ...message, toolCalls: [call] } : { role: 'assistant', text: '', toolCalls: [call] },
      { role: 'tool', results: next.results.filter(({ id }) => id === call.id) },
    ]);
  });
