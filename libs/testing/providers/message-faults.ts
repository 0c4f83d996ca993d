interface Block {
  readonly type: string;
  readonly text?: string;
  readonly id?: string;
  readonly tool_use_id?: string;
}
interface AnthropicMessage {
  readonly role: string;
  readonly content: string | readonly Block[];
}
interface OpenAiMessage {
  readonly role: string;
  readonly content?: string | null;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly arguments: string } }[];
  readonly tool_call_id?: string;
}

const PORTABLE_ID = /^[A-Za-z0-9_-]{1,64}$/;

const idFaults = (ids: readonly string[]): string[] => [
  ...(new Set(ids).size === ids.length ? [] : ['an id of a tool call is used twice']),
  ...ids.filter((id) => !PORTABLE_ID.test(id)).map((id) => `"${id}" is not a valid id of a tool call`),
];

const same = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && new Set([...a, ...b]).size === a.length;

const blocksOf = ({ content }: AnthropicMessage): readonly Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content;
const usesOf = (message: AnthropicMessage | undefined): string[] =>
  (message ? blocksOf(message) : []).flatMap(({ type, id }) => (type === 'tool_use' ? [id ?? ''] : []));
const resultsOf = (message: AnthropicMessage | undefined): string[] =>
  (message ? blocksOf(message) : []).flatMap((block) =>
    block.type === 'tool_result' ? [block.tool_use_id ?? ''] : [],
  );

/**
 * Returns the violations of Anthropic's rules: roles alternate, and the next message has each
 * call's result.
 */
export const anthropicFaults = (body: unknown): string[] => {
  const { messages } = body as { messages: readonly AnthropicMessage[] };
  const faults = idFaults(messages.flatMap(usesOf));
  if (messages.at(-1)?.role !== 'user') faults.push('the last message is not the user’s');
  messages.forEach((message, index) => {
    const { role } = message;
    if (role !== (index % 2 === 0 ? 'user' : 'assistant')) faults.push(`message ${index} is of ${role}`);
    const blocks = blocksOf(message);
    if (blocks.length === 0 || blocks.some(({ type, text }) => type === 'text' && text?.trim() === ''))
      faults.push(`message ${index} is empty`);
    if (role === 'user' && usesOf(message).length > 0) faults.push(`message ${index}: the user uses a tool`);
    if (!same(usesOf(messages[index - 1]), resultsOf(message)))
      faults.push(`message ${index}: its results are not those of the uses before it`);
  });
  return faults;
};

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

/**
 * Returns the violations of OpenAI's rules: a `tool` message for each call follows the message that
 * makes it.
 */
export const openAiFaults = (body: unknown): string[] => {
  const { messages } = body as { messages: readonly OpenAiMessage[] };
  const faults = idFaults(messages.flatMap(({ tool_calls: calls = [] }) => calls.map(({ id }) => id)));
  const waiting = new Set<string>();
  messages.forEach(({ role, content, tool_calls: calls = [], tool_call_id: answers = '' }, index) => {
    const at = (fault: string): unknown => faults.push(`message ${index}: ${fault}`);
    if (role === 'tool' ? !waiting.delete(answers) : waiting.size > 0)
      at('a tool call has no result, or two');
    if (role === 'system' && index > 0) at('a system message in the middle');
    if (!/^(system|user|assistant|tool)$/.test(role)) at(`unknown role ${role}`);
    if (role !== 'assistant' && typeof content !== 'string') at('no content');
    if (role === 'assistant' && calls.length === 0 && !content) at('an empty answer');
    if (calls.some(({ function: { arguments: text } }) => !isJson(text))) at('arguments that are no JSON');
    for (const { id } of calls) waiting.add(id);
  });
  if (waiting.size > 0) faults.push('the last tool calls have no results');
  if (messages.at(-1)?.role === 'assistant') faults.push('the last message is the assistant’s');
  return faults;
};
