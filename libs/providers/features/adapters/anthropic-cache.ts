import type Anthropic from '@anthropic-ai/sdk';
import type { ModelMessage } from '@antiphon/providers-domain';

type Body = Pick<Anthropic.MessageCreateParamsNonStreaming, 'messages' | 'system' | 'tools'>;

const MARK = { cache_control: { type: 'ephemeral' as const } };

/**
 * Returns the messages after which the vendor is asked to cache, the last first. A request has at
 * most four marks, and one of them is for tools and system text. The vendor looks 20 blocks back
 * from a mark, which ten parallel tool calls exceed, so earlier ends are marked again:
 *
 * - the end of this call's prompt, which the next call of the turn reads;
 * - the end of the last call's prompt;
 * - the end of the conversation before the turn, which the next turn reads if the turn has a
 *   context of its own.
 */
export const cacheMarks = (messages: readonly ModelMessage[]): number[] => {
  const last = messages.length - 1;
  const promptBefore = (index: number): number =>
    messages.slice(0, Math.max(0, index)).findLastIndex(({ role }) => role !== 'assistant');
  const startBefore = (index: number): number =>
    messages.slice(0, Math.max(0, index)).findLastIndex(({ role }) => role === 'user');
  const withContext = messages.findLastIndex((message) => message.role === 'user' && message.context);
  const start = withContext === -1 ? startBefore(messages.length) : withContext;
  const beforeTurn = start - 1;
  const beforeLastTurn = startBefore(start) - 1;
  const isFirstCall = start === last;
  const earlier = isFirstCall && withContext !== -1 ? beforeLastTurn : promptBefore(last);
  const older = isFirstCall && withContext === -1 ? beforeLastTurn : beforeTurn;
  return [...new Set([last, earlier, older])].filter((index) => index >= 0);
};

const markMessage = (message: Anthropic.MessageParam): Anthropic.MessageParam => {
  const { content } = message;
  if (typeof content === 'string')
    return { ...message, content: [{ type: 'text', text: content, ...MARK }] } as Anthropic.MessageParam;
  const block = content.at(-1);
  // The vendor takes no mark on a thought.
  if (!block || block.type === 'thinking' || block.type === 'redacted_thinking') return message;
  const marked = [...content.slice(0, -1), { ...block, ...MARK }];
  return { ...message, content: marked } as Anthropic.MessageParam;
};

const markTools = (tools: Body['tools']): Body['tools'] =>
  tools?.map((tool, index) => (index === tools.length - 1 ? { ...tool, ...MARK } : tool));

const textOfSystem = (system: NonNullable<Body['system']>): string =>
  typeof system === 'string' ? system : system.map(({ text }) => text).join('\n\n');

/** Marks the parts of a request that the vendor may cache, and reads from its cache. */
export const markCached = <B extends Body>(body: B, messages: readonly ModelMessage[]): B => {
  const marked = new Set(cacheMarks(messages));
  const { system, tools } = body;
  return {
    ...body,
    ...(system === undefined ? {} : { system: [{ type: 'text', text: textOfSystem(system), ...MARK }] }),
    ...(system === undefined && tools ? { tools: markTools(tools) } : {}),
    messages: body.messages.map((message, index) => (marked.has(index) ? markMessage(message) : message)),
  };
};
