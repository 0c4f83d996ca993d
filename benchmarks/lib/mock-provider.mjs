// A mock model that replies at once over HTTP, in OpenAI's and in Anthropic's format, so that a
// measurement shows the runtime's own time. `TOOLS=n` in a user message yields n tool calls, one a
// step, then text. `PACE=n` sends the words n milliseconds apart, `TAKE=n` the whole answer
// within n milliseconds. It runs as its own process and prints its port.
import { createServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

const WORDS = Array.from({ length: 20 }, (_, index) => ` word${index}`);
const INPUT_TOKENS = 100;
let calls = 0;

const textOf = (content) =>
  typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('');
const isResult = (message) =>
  message.role === 'tool' ||
  (Array.isArray(message.content) && message.content.some(({ type }) => type === 'tool_result'));

const questionOf = (messages) =>
  messages.findLastIndex((message) => message.role === 'user' && !isResult(message));
const wishOf = (messages, name) =>
  Number(new RegExp(`${name}=(\\d+)`).exec(textOf(messages[questionOf(messages)]?.content))?.[1] ?? 0);

/** Which tool call is due, or null for text. */
const plan = ({ messages, tools }) => {
  const question = questionOf(messages);
  const wanted = wishOf(messages, 'TOOLS');
  const done = messages.slice(question + 1).filter(isResult).length;
  if (done >= wanted || !tools?.length) return null;
  return {
    id: `call_${calls}`,
    name: tools[0].function?.name ?? tools[0].name,
    input: { q: `step ${done}` },
  };
};

const sse = (data, event) => `${event ? `event: ${event}\n` : ''}data: ${JSON.stringify(data)}\n\n`;

const openAi = (body, tool) => {
  const head = { id: `chatcmpl-${calls}`, object: 'chat.completion.chunk', created: 1, model: body.model };
  const chunk = (delta, finish_reason = null) =>
    sse({ ...head, choices: [{ index: 0, delta, finish_reason }] });
  const usage = { prompt_tokens: INPUT_TOKENS, completion_tokens: 20, total_tokens: INPUT_TOKENS + 20 };
  const call = tool && {
    index: 0,
    id: tool.id,
    type: 'function',
    function: { name: tool.name, arguments: JSON.stringify(tool.input) },
  };
  return [
    chunk({ role: 'assistant', content: tool ? null : '' }),
    ...(call ? [chunk({ tool_calls: [call] })] : WORDS.map((content) => chunk({ content }))),
    chunk({}, tool ? 'tool_calls' : 'stop'),
    ...(body.stream_options?.include_usage ? [sse({ ...head, choices: [], usage })] : []),
    'data: [DONE]\n\n',
  ];
};

const anthropic = (body, tool) => {
  const event = (data) => sse(data, data.type);
  const message = { id: `msg_${calls}`, type: 'message', role: 'assistant', model: body.model, content: [] };
  const deltas = tool
    ? [{ type: 'input_json_delta', partial_json: JSON.stringify(tool.input) }]
    : WORDS.map((text) => ({ type: 'text_delta', text }));
  const content_block = tool
    ? { type: 'tool_use', id: tool.id, name: tool.name, input: {} }
    : { type: 'text', text: '' };
  return [
    {
      type: 'message_start',
      message: { ...message, usage: { input_tokens: INPUT_TOKENS, output_tokens: 1 } },
    },
    { type: 'content_block_start', index: 0, content_block },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index: 0, delta })),
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: tool ? 'tool_use' : 'end_turn' },
      usage: { output_tokens: 20 },
    },
    { type: 'message_stop' },
  ].map(event);
};

/** The head of the answer goes out with its first word. */
const writePaced = async (response, pieces, paceMs) => {
  response.write(pieces.slice(0, 2).join(''));
  for (const piece of pieces.slice(2)) {
    await wait(paceMs);
    response.write(piece);
  }
  response.end();
};

const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    if (request.method === 'GET') return response.end(JSON.stringify({ calls }));
    calls += 1;
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8'));
    const format = request.url.endsWith('/messages') ? anthropic : openAi;
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    const pieces = format(body, plan(body));
    const paceMs = wishOf(body.messages, 'PACE') || wishOf(body.messages, 'TAKE') / (pieces.length - 2);
    if (paceMs > 0) void writePaced(response, pieces, paceMs);
    else response.end(pieces.join(''));
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send?.({ port: server.address().port }));
process.once('disconnect', () => process.exit(0));
