type Json = Record<string, unknown>;

/** Usage as the vendor reports it. OpenAI's input includes what was cached, Anthropic's does not. */
export interface MockUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens?: number;
  /** Reported in the format of Anthropic only. */
  readonly cacheWriteTokens?: number;
}

/** Reply of a mock model, in a form common to both vendors. */
export interface MockReply {
  /** Chunks of text, streamed one by one. */
  readonly text?: readonly string[];
  readonly thought?: readonly string[];
  readonly tools?: readonly { readonly id: string; readonly name: string; readonly input: unknown }[];
  readonly usage?: MockUsage | null;
  /** Why the answer ends early. */
  readonly cutBy?: 'length' | 'content_filter';
}

const DEFAULT_USAGE: MockUsage = { inputTokens: 10, outputTokens: 5 };

const anthropicInput = ({ inputTokens, cacheReadTokens, cacheWriteTokens }: MockUsage): Json => ({
  input_tokens: inputTokens,
  ...(cacheReadTokens === undefined ? {} : { cache_read_input_tokens: cacheReadTokens }),
  ...(cacheWriteTokens === undefined ? {} : { cache_creation_input_tokens: cacheWriteTokens }),
});

type Finish = Readonly<Record<'tools' | 'stop' | 'length' | 'content_filter', string>>;
const ANTHROPIC_FINISH: Finish = {
  tools: 'tool_use',
  stop: 'end_turn',
  length: 'max_tokens',
  content_filter: 'refusal',
};
const OPENAI_FINISH: Finish = {
  tools: 'tool_calls',
  stop: 'stop',
  length: 'length',
  content_filter: 'content_filter',
};
const finishOf = (reply: MockReply, names: Finish): string =>
  names[reply.cutBy ?? ((reply.tools?.length ?? 0) > 0 ? 'tools' : 'stop')];

const anthropicEvent = (data: Json): string =>
  `event: ${String(data['type'])}\ndata: ${JSON.stringify(data)}\n\n`;

const anthropicBlock = (index: number, start: Json, deltas: readonly Json[]): string[] =>
  [
    { type: 'content_block_start', index, content_block: start },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ].map(anthropicEvent);

const halves = (json: string): string[] => [json.slice(0, json.length >> 1), json.slice(json.length >> 1)];

const anthropicBlocks = (reply: MockReply): string[][] => {
  let index = 0;
  const blocks: string[][] = [];
  if (reply.thought !== undefined)
    blocks.push(
      anthropicBlock(
        index++,
        { type: 'thinking', thinking: '', signature: '' },
        reply.thought.map((thinking) => ({ type: 'thinking_delta', thinking })),
      ),
    );
  if (reply.text !== undefined)
    blocks.push(
      anthropicBlock(
        index++,
        { type: 'text', text: '' },
        reply.text.map((text) => ({ type: 'text_delta', text })),
      ),
    );
  for (const { id, name, input } of reply.tools ?? [])
    blocks.push(
      anthropicBlock(
        index++,
        { type: 'tool_use', id, name, input: {} },
        halves(JSON.stringify(input)).map((partial_json) => ({ type: 'input_json_delta', partial_json })),
      ),
    );
  return blocks;
};

/** Renders the events of Anthropic's Messages stream. */
export const anthropicStream = (model: string, reply: MockReply): string[] => {
  const usage = reply.usage === undefined ? DEFAULT_USAGE : reply.usage;
  const message = {
    id: 'msg_mock',
    type: 'message',
    role: 'assistant',
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    ...(usage === null ? {} : { usage: { ...anthropicInput(usage), output_tokens: 1 } }),
  };
  return [
    anthropicEvent({ type: 'message_start', message }),
    anthropicEvent({ type: 'ping' }),
    ...anthropicBlocks(reply).flat(),
    anthropicEvent({
      type: 'message_delta',
      delta: { stop_reason: finishOf(reply, ANTHROPIC_FINISH), stop_sequence: null },
      ...(usage === null ? {} : { usage: { output_tokens: usage.outputTokens } }),
    }),
    anthropicEvent({ type: 'message_stop' }),
  ];
};

/** Renders Anthropic's response without streaming. */
export const anthropicMessage = (model: string, reply: MockReply): Json => {
  const usage = reply.usage === undefined ? DEFAULT_USAGE : reply.usage;
  return {
    id: 'msg_mock',
    type: 'message',
    role: 'assistant',
    model,
    content: [
      ...(reply.thought ? [{ type: 'thinking', thinking: reply.thought.join(''), signature: 's' }] : []),
      ...(reply.text ? [{ type: 'text', text: reply.text.join('') }] : []),
      ...(reply.tools ?? []).map((tool) => ({ type: 'tool_use', ...tool })),
    ],
    stop_reason: finishOf(reply, ANTHROPIC_FINISH),
    stop_sequence: null,
    ...(usage === null ? {} : { usage: { ...anthropicInput(usage), output_tokens: usage.outputTokens } }),
  };
};

const openAiEvent = (data: Json): string => `data: ${JSON.stringify(data)}\n\n`;
const openAiUsage = (reply: MockReply): Json | null => {
  const usage = reply.usage === undefined ? DEFAULT_USAGE : reply.usage;
  return usage === null
    ? null
    : {
        prompt_tokens: usage.inputTokens,
        completion_tokens: usage.outputTokens,
        total_tokens: usage.inputTokens + usage.outputTokens,
        ...(usage.cacheReadTokens === undefined
          ? {}
          : { prompt_tokens_details: { cached_tokens: usage.cacheReadTokens } }),
      };
};

const toolDeltas = (reply: MockReply): Json[] =>
  (reply.tools ?? []).flatMap(({ id, name, input }, index) => [
    { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] },
    ...halves(JSON.stringify(input)).map((json) => ({
      tool_calls: [{ index, function: { arguments: json } }],
    })),
  ]);

/** Renders the chunks of OpenAI's chat completions stream. */
export const openAiStream = (model: string, reply: MockReply): string[] => {
  const head = { id: 'chatcmpl-mock', object: 'chat.completion.chunk', created: 1, model };
  const chunk = (delta: Json, finish_reason: string | null = null): string =>
    openAiEvent({ ...head, choices: [{ index: 0, delta, finish_reason }] });
  const usage = openAiUsage(reply);
  return [
    chunk({ role: 'assistant', content: '' }),
    ...(reply.thought ?? []).map((reasoning_content) => chunk({ reasoning_content })),
    ...(reply.text ?? []).map((content) => chunk({ content })),
    ...toolDeltas(reply).map((delta) => chunk(delta)),
    chunk({}, finishOf(reply, OPENAI_FINISH)),
    ...(usage === null ? [] : [openAiEvent({ ...head, choices: [], usage })]),
    'data: [DONE]\n\n',
  ];
};

/** Renders OpenAI's response without streaming. */
export const openAiCompletion = (model: string, reply: MockReply): Json => {
  const usage = openAiUsage(reply);
  const tool_calls = (reply.tools ?? []).map(({ id, name, input }) => ({
    id,
    type: 'function',
    function: { name, arguments: JSON.stringify(input) },
  }));
  const message = {
    role: 'assistant',
    content: reply.text?.join('') ?? null,
    ...(reply.thought ? { reasoning_content: reply.thought.join('') } : {}),
    ...(tool_calls.length > 0 ? { tool_calls } : {}),
  };
  return {
    id: 'chatcmpl-mock',
    object: 'chat.completion',
    created: 1,
    model,
    choices: [{ index: 0, message, finish_reason: finishOf(reply, OPENAI_FINISH) }],
    ...(usage === null ? {} : { usage }),
  };
};
