import { spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, textOf, type FrameStream, type SocketClient } from '@antiphon/testing/client';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import { CLI, runCli, startStackWith, twoVendorConfig, waitForRoot } from './stack-under-test.js';

jest.setTimeout(120_000);

let script: MockScript = () => ({ text: ['fine'] });
let mock: MockModel;
let stack: TestStack;
let client: SocketClient;
let peers = 0;

beforeAll(async () => {
  mock = await startMockModel((request) => script(request));
  stack = await startStackWith(twoVendorConfig(mock.url), {}, { shareDatabase: true });
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
});

type Frames = Awaited<ReturnType<FrameStream['done']>>;
type Json = Readonly<Record<string, unknown>>;
interface Body {
  readonly messages: readonly (Json & { readonly role: string; readonly content: unknown })[];
}

/** Begins a conversation with an agent. Each call of the result is a turn of it. */
const converse = (agent: string) => {
  const peer = `reported-${++peers}`;
  return (content: string): Promise<Frames> =>
    client.stream('chat.send', { channel: 'test', account: 'e2e', peer, content, agent }).done();
};
const endOf = (frames: Frames) => frames.at(-1)?.data as Json;
const errorOf = (frames: Frames) =>
  frames.find(({ event }) => event === 'error')?.data as { code: string; message: string };
const resultsOf = (frames: Frames): readonly Json[] =>
  frames.filter(({ event }) => event === 'tool_result').map(({ data }) => data as Json);
const lastBody = (): Body => mock.calls.at(-1)?.seen.body as Body;

const partsOf = (content: unknown): readonly Json[] => (Array.isArray(content) ? (content as Json[]) : []);
/** Returns the ids of the tool calls of a request, in the order of its messages. */
const callIds = ({ messages }: Body): unknown[] =>
  messages.flatMap((message) => [
    ...partsOf(message['tool_calls']).map(({ id }) => id),
    ...partsOf(message.content).flatMap(({ type, id }) => (type === 'tool_use' ? [id] : [])),
  ]);
/** Returns the ids that the tool results of a request name. */
const resultIds = ({ messages }: Body): unknown[] =>
  messages.flatMap((message) => [
    ...(message.role === 'tool' ? [message['tool_call_id']] : []),
    ...partsOf(message.content).flatMap((part) =>
      part['type'] === 'tool_result' ? [part['tool_use_id']] : [],
    ),
  ]);
/** Returns the messages of a request that vendors refuse as empty. */
const emptyMessages = ({ messages }: Body): unknown[] =>
  messages.filter((message) => {
    if (message['tool_calls'] !== undefined || message.role === 'tool') return false;
    const texts = typeof message.content === 'string' ? [message.content] : partsOf(message.content);
    const isBlank = (part: unknown): boolean => {
      const text = typeof part === 'string' ? part : (part as Json)['text'];
      return typeof text === 'string' && text.trim() === '';
    };
    return texts.length === 0 || texts.some(isBlank);
  });

const add = (n: number) => ({ name: 'calculator', input: { expression: `${n} + ${n}` } });

describe.each(['claude', 'gpt'])('a turn of the agent %s', (agent) => {
  // @shows U05
  it('completes where each round of tool calls has the same id, and sends them back under ids that differ', async () => {
    script = ({ toolResults }) =>
      toolResults.length < 3
        ? { tools: [{ id: 'call_0', ...add(toolResults.length + 1) }] }
        : { text: [toolResults.join(' | ')] };
    const send = converse(agent);
    expect(textOf(await send('three rounds'))).toBe('2 | 4 | 6');
    expect(new Set(callIds(lastBody())).size).toBe(3);
    expect(resultIds(lastBody())).toEqual(callIds(lastBody()));
    expect(endOf(await send('and again'))).toMatchObject({ status: 'completed' });
    expect(new Set(callIds(lastBody())).size).toBe(callIds(lastBody()).length);
  });

  // @shows U06
  it('runs both calls of an answer that have one id, and sends each result to its own call', async () => {
    script = ({ toolResults }) =>
      toolResults.length === 0
        ? { tools: [1, 2].map((n) => ({ id: 'call_1', ...add(n) })) }
        : { text: [toolResults.join(' | ')] };
    expect(textOf(await converse(agent)('two at once'))).toBe('2 | 4');
    expect(new Set(callIds(lastBody())).size).toBe(2);
    expect(resultIds(lastBody())).toEqual(callIds(lastBody()));
  });

  // @shows U20
  it('keeps a conversation whose texts, arguments and results have U+0000', async () => {
    script = ({ toolResults }) =>
      toolResults.length === 0
        ? { text: ['a\0b'], tools: [{ id: 'call_1', name: 'echo', input: { text: 'x\0y' } }] }
        : { text: [`got \0${toolResults.join('')}`] };
    const send = converse(agent);
    const frames = await send('zeros');
    expect(endOf(frames)).toMatchObject({ status: 'completed' });
    expect(textOf(frames)).toContain('a\ufffdb');
    expect(JSON.stringify(resultsOf(frames))).toContain('x\ufffdy');
    script = () => ({ text: ['fine'] });
    expect(textOf(await send('next'))).toBe('fine');
    expect(JSON.stringify(lastBody())).not.toContain('\\u0000');
  });

  // @shows U22
  it('reads that there is no tool of an unknown name, and continues', async () => {
    script = ({ toolResults }) =>
      toolResults.length === 0
        ? {
            tools: ['calculatr', 'functions.calculator', 'unknown tool!'].map((name, n) => ({
              id: `c${n}`,
              name,
              input: {},
            })),
          }
        : { text: [toolResults.join(' | ')] };
    const frames = await converse(agent)('which');
    expect(resultsOf(frames).map(({ is_error }) => is_error)).toEqual([true, true, true]);
    expect(textOf(frames)).toContain('there is no tool "calculatr"');
    expect(endOf(frames)).toMatchObject({ status: 'completed' });
  });

  // @shows U24
  it('sends no empty message after an answer without text', async () => {
    const send = converse(agent);
    for (const text of [[], [''], [' \n']]) {
      script = () => ({ text });
      expect(endOf(await send('say nothing'))).toMatchObject({ status: 'completed' });
    }
    script = () => ({ text: ['fine'] });
    expect(textOf(await send('and now'))).toBe('fine');
    expect(emptyMessages(lastBody())).toEqual([]);
  });

  // @shows U25
  it.each([' ', '\n\n', '\t \u00a0', '\u200b'])(
    'never sends a blank message as one of its own (%j)',
    async (blank) => {
      script = ({ user }) => ({ text: [`heard ${user.trim()}`] });
      const send = converse(agent);
      await send('first');
      await send(blank).catch(() => undefined);
      expect(textOf(await send('last'))).toBe('heard last');
      expect(emptyMessages(lastBody())).toEqual([]);
    },
  );

  // @shows U26
  it('sends a call without text back without an empty text, in the turn and in the next one', async () => {
    script = ({ toolResults, user }) =>
      user === 'count' && toolResults.length === 0
        ? { tools: [{ id: 'call_1', ...add(1) }] }
        : { text: [`got ${toolResults.join('')}`] };
    const send = converse(agent);
    expect(textOf(await send('count'))).toBe('got 2');
    expect(emptyMessages(lastBody())).toEqual([]);
    expect(textOf(await send('thanks'))).toBe('got ');
    expect(emptyMessages(lastBody())).toEqual([]);
  });

  // @shows U27
  it('answers the next message after one that was over the context window of the model', async () => {
    const TOO_LONG =
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 20001 tokens.";
    script = ({ seen }) =>
      JSON.stringify(seen.body).length > 60_000
        ? {
            status: 400,
            body: {
              error: { message: TOO_LONG, type: 'invalid_request_error', code: 'context_length_exceeded' },
            },
          }
        : { text: ['fine'] };
    const send = converse(agent);
    const frames = await send('x'.repeat(80_000));
    expect(errorOf(frames).message).toContain('maximum context length is 8192 tokens');
    expect(endOf(frames)).toMatchObject({ status: 'failed' });
    for (const content of ['short', 'again']) expect(textOf(await send(content))).toBe('fine');
  });

  // @shows U28
  it('is tried again after an overload that is said within a stream of status 200', async () => {
    let calls = 0;
    const error = { type: 'overloaded_error', message: 'Overloaded' };
    const data = JSON.stringify(
      agent === 'claude' ? { type: 'error', error } : { error: { ...error, code: 503 } },
    );
    script = () => (calls++ === 0 ? { raw: `event: error\ndata: ${data}\n\n` } : { text: ['fine'] });
    expect(textOf(await converse(agent)('hello'))).toBe('fine');
    expect(calls).toBe(2);
  });

  // @shows U29
  it.each(['', '\n\n', ': nothing\n\n', 'data: [DONE]\n\n'])(
    'fails with a reason on the event stream %j, and the next turn completes',
    async (raw) => {
      script = () => ({ raw });
      const send = converse(agent);
      const frames = await send('hello');
      expect(errorOf(frames)).toMatchObject({
        code: 'PROVIDER.PROTOCOL',
        message: expect.stringMatching(/ended|no event|empty/),
      });
      expect(endOf(frames)).toMatchObject({ status: 'failed' });
      script = () => ({ text: ['fine'] });
      expect(textOf(await send('again'))).toBe('fine');
    },
  );

  // @shows U38
  it('keeps the results of all calls of an answer next to one bad call', async () => {
    const bad = { name: 'calculator', input: { expression: '1 +' } };
    script = ({ toolResults }) =>
      toolResults.length === 0
        ? {
            tools: [add(1), bad, { name: 'calculator', input: {} }, add(2)].map((call, n) => ({
              id: `c${n}`,
              ...call,
            })),
          }
        : { text: ['done'] };
    const frames = await converse(agent)('four');
    expect(
      resultsOf(frames)
        .toSorted((a, b) => String(a['id']).localeCompare(String(b['id'])))
        .map(({ is_error }) => is_error)
        .filter(Boolean),
    ).toHaveLength(2);
    expect(resultsOf(frames).map(({ content }) => content)).toEqual(expect.arrayContaining(['2', '4']));
    expect(textOf(frames)).toBe('done');
  });

  // @shows U39
  it('ends after the maximum of its steps where the model repeats one failing call, and says so', async () => {
    script = () => ({ tools: [{ id: 'again', name: 'calculator', input: { expression: '1 /' } }] });
    const before = mock.calls.length;
    const frames = await converse(agent)('loop');
    expect(mock.calls.length - before).toBeLessThanOrEqual(10);
    expect(errorOf(frames)).toMatchObject({ code: 'TURN.MAX_ITERATIONS' });
    expect(endOf(frames)).toMatchObject({ status: 'failed' });
  });

  // @shows U09
  it('sends reasoning to its clients apart from the text, and keeps it in the log', async () => {
    script = () => ({ thought: ['hm, ', 'low tide'], text: ['at six'] });
    const frames = await converse(agent)('when');
    const thoughts = frames.filter(({ event }) => event === 'thought').map(({ data }) => data);
    expect([thoughts.join(''), textOf(frames)]).toEqual(['hm, low tide', 'at six']);
    const { sessionId } = frames[0]?.data as { sessionId: string };
    const shown = await runCli(stack, ['session', 'show', sessionId, '--json']);
    expect(shown.stdout).toContain('hm, low tide');
  });
});

describe('messages while a turn runs', () => {
  // @shows U45
  it('wait for it, and are answered one after another, with what was said before', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    script = async ({ user, seen }) => {
      if (user === 'first') await held;
      return {
        text: [
          `${user} after ${(seen.body as Body).messages.filter(({ role }) => role === 'assistant').length}`,
        ],
      };
    };
    const send = converse('gpt');
    const turns = ['first', 'second', 'third'].map((content) => send(content));
    release();
    expect((await Promise.all(turns)).map(textOf)).toEqual([
      ...['first after 0', 'second after 1', 'third after 2'],
    ]);
  });
});

/** Runs `antiphon chat -` with bytes on its input, or with another input. */
const pipe = (input: string | Buffer | 'closed', env: NodeJS.ProcessEnv = {}) =>
  new Promise<{ code: number | null; out: string; err: string }>((resolve) => {
    const child = spawn(process.execPath, [CLI, 'chat', '--agent', 'gpt', '--peer', `pipe-${++peers}`, '-'], {
      env: { ...process.env, NODE_OPTIONS: '', ANTIPHON_HOME: stack.home, ...env },
      stdio: [input === 'closed' ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    });
    const shown = { out: '', err: '' };
    child.stdout?.on('data', (data: Buffer) => (shown.out += data.toString()));
    child.stderr?.on('data', (data: Buffer) => (shown.err += data.toString()));
    child.on('close', (code) => resolve({ code, ...shown }));
    if (input !== 'closed') child.stdin?.end(input);
  });

describe('a text that is piped into antiphon chat', () => {
  beforeAll(() => {
    script = ({ user }) => ({ text: [JSON.stringify(user)] });
  });

  // @shows U65
  it.each([
    ['as it is', 'low tide', 'low tide'],
    ['without the line end of its last line', 'one\ntwo\n', 'one\ntwo'],
    ['with lines of Windows', 'one\r\ntwo\r\n', 'one\r\ntwo'],
    ['without its byte order mark', '\ufefflow tide', 'low tide'],
    ['in the locale C', '低潮 🌊', '低潮 🌊'],
  ])('reaches the model %s', async (_name, input, heard) => {
    const { code, out } = await pipe(input, { LC_ALL: 'C', LANG: 'C' });
    expect([code, JSON.parse(out)]).toEqual([0, heard]);
  });

  // @shows U65
  it('is missed with a reason where the input is closed or has nothing', async () => {
    for (const input of ['closed', '', '\n'] as const) {
      const { code, out, err } = await pipe(input);
      expect([input, code, out]).toEqual([input, 2, '']);
      expect(err).not.toBe('');
    }
  });
});

it('leaves a log that the audit accepts', async () => {
  await waitForRoot(stack);
  const { code, stdout } = await runCli(stack, ['audit']);
  expect([code, stdout]).toEqual([0, expect.stringContaining('everything holds')]);
});
