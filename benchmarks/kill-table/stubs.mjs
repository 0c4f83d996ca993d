// The outside world of the turns: a model, and a target that acts. Both run in the process that
// kills, so that a kill can follow a boundary of a turn within microseconds. A turn is named by
// `TURN=<id>` in its message. The model requests one call of the first tool, and then sends text.
import { createServer } from 'node:http';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';

/** Milliseconds before the first word, and between words. */
const FIRST_WORD_MS = 20;
const WORD_MS = 1;
const WORDS = Array.from({ length: 20 }, (_, index) => ` word${index}`);
/** Milliseconds before the target acts, and before it responds. */
const ACT_MS = 10;
const RESPOND_MS = 10;

const listen = async (handler) => {
  const server = createServer(handler);
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { port: server.address().port, close };
};

const readBody = async (request) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
};

const textOf = (content) =>
  typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('');

/** Returns the turn of a request, and what the model was told about its tool call. */
const readRequest = ({ messages }) => {
  const question = messages.findLastIndex(({ role }) => role === 'user');
  const id = /TURN=([\w-]+)/.exec(textOf(messages[question]?.content))?.[1] ?? '';
  const result = messages.slice(question + 1).find(({ role }) => role === 'tool');
  return { id, told: result === undefined ? undefined : textOf(result.content) };
};

/** Pieces of an answer. Each answer and each call has an id of its own, as those of vendors have. */
const createAnswer = (number) => {
  const head = { id: `chatcmpl-${number}`, object: 'chat.completion.chunk', created: 1, model: 'mock' };
  const chunk = (delta, finish_reason = null) =>
    `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  const callOf = (name, url) => [
    {
      ...{ index: 0, id: `call_${number}`, type: 'function' },
      function: { name, arguments: JSON.stringify({ url }) },
    },
  ];
  return {
    text: () => [
      chunk({ role: 'assistant', content: '' }),
      ...WORDS.map((content) => chunk({ content })),
      chunk({}, 'stop'),
    ],
    call: (name, url) => [
      chunk({ role: 'assistant', content: null }),
      chunk({ tool_calls: callOf(name, url) }),
      chunk({}, 'tool_calls'),
    ],
  };
};

const writePaced = async (response, pieces) => {
  await wait(FIRST_WORD_MS);
  for (const piece of pieces) {
    if (response.destroyed) return;
    response.write(piece);
    await wait(WORD_MS);
  }
  response.end('data: [DONE]\n\n');
};

/** Counts and boundaries of each turn, as the outside saw them. */
class TurnRecords {
  #turns = new Map();
  #watchers = new Map();

  of(id) {
    if (!this.#turns.has(id)) this.#turns.set(id, { modelCalls: 0, toolCalls: 0, effects: 0, told: [] });
    return this.#turns.get(id);
  }

  /** Calls `onMark` at each boundary of a turn, repetitions included. */
  watch(id, onMark) {
    this.#watchers.set(id, onMark);
    return () => this.#watchers.delete(id);
  }

  mark(id, name) {
    this.#watchers.get(id)?.(name);
  }
}

let answers = 0;

const handleModel = (records, targetUrl) => async (request, response) => {
  const body = JSON.parse(await readBody(request));
  const { id, told } = readRequest(body);
  const turn = records.of(id);
  turn.modelCalls += 1;
  if (told !== undefined) turn.told.push(told);
  const number = told === undefined ? 1 : 2;
  records.mark(id, `model ${number} asked`);
  response.once('finish', () => records.mark(id, `model ${number} answered`));
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.flushHeaders();
  const answer = createAnswer((answers += 1));
  const url = `${targetUrl()}/act?turn=${id}`;
  await writePaced(
    response,
    told === undefined ? answer.call(body.tools[0].function.name, url) : answer.text(),
  );
};

const handleTarget = (records) => async (request, response) => {
  const id = new URL(request.url, 'http://target').searchParams.get('turn') ?? '';
  const turn = records.of(id);
  turn.toolCalls += 1;
  records.mark(id, 'tool asked');
  await wait(ACT_MS);
  turn.effects += 1;
  records.mark(id, 'tool acted');
  await wait(RESPOND_MS);
  response.once('finish', () => records.mark(id, 'tool answered'));
  response.writeHead(200, { 'content-type': 'text/plain' }).end(`done ${id}`);
};

/** Starts both. `aimAt` names the address of the target as the runtime under test may call it. */
export const startStubs = async () => {
  const records = new TurnRecords();
  let targetUrl = '';
  const model = await listen(handleModel(records, () => targetUrl));
  const target = await listen(handleTarget(records));
  const localUrl = `http://127.0.0.1:${target.port}`;
  return {
    providerUrl: `http://127.0.0.1:${model.port}`,
    targetPort: target.port,
    aimAt: (url = localUrl) => (targetUrl = url),
    turn: (id) => records.of(id),
    watch: (id, onMark) => records.watch(id, onMark),
    close: () => {
      model.close();
      target.close();
    },
  };
};
