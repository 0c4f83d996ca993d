import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, textOf, type SocketClient } from '@antiphon/testing/client';
import { report } from '@antiphon/testing/load';
import type { TestStack } from '@antiphon/testing/stack';
import { llamaVersion, startLlama } from '../../../benchmarks/lib/llama-cpp.mjs';
import { startStackWith, waitForAccepted } from '../stack-under-test.js';
import { readReservationEnds, reportedUsage, startRecorder, type Recorder } from './record-server.js';

/* llama.cpp's own server with a real model of 135 million parameters. */
jest.setTimeout(900_000);
const INSTALL_MS = 1_800_000;
/** Window of the served model, tokens. */
const CONTEXT = 1_024;
const CUT_TOKENS = 12;

const configFor = (url: string): string => `
[gateway]
port = 0

[[providers]]
name = "llama"
kind = "openai-compatible"
base_url = "${url}/v1"
api_key_env = "REAL_KEY"

[[providers]]
name = "stranger"
kind = "openai-compatible"
base_url = "${url}/v1"
api_key_env = "WRONG_KEY"

[[prices]]
provider = "llama"
model = "smollm2"
input_per_mtok = 3
output_per_mtok = 15

[[agents]]
id = "chat"
provider = "llama"
model = "smollm2"
system_prompt = "Answer in one word."
max_output_tokens = 200

[[agents]]
id = "cut"
provider = "llama"
model = "smollm2"
max_output_tokens = ${CUT_TOKENS}

[[agents]]
id = "tools"
provider = "llama"
model = "smollm2"
tools = ["calculator"]
max_output_tokens = 40

[[agents]]
id = "other-model"
provider = "llama"
model = "no-such-model"
max_output_tokens = ${CUT_TOKENS}

[[agents]]
id = "stranger"
provider = "stranger"
model = "smollm2"
`;

let llama: Awaited<ReturnType<typeof startLlama>>;
let recorder: Recorder;
let stack: TestStack;
let client: SocketClient;
let peers = 0;
beforeAll(async () => {
  llama = await startLlama({ model: 'smollm2', context: CONTEXT });
  recorder = await startRecorder(llama.baseUrl.replace(/\/v1$/, ''));
  const env = { REAL_KEY: llama.key, WRONG_KEY: 'sk-of-another-server-0123456789' };
  stack = await startStackWith(configFor(recorder.url), {}, { shareDatabase: true, env });
  client = await connectClient(stack.wsUrl);
  report(`llama.cpp by xllamacpp ${llamaVersion()}`);
}, INSTALL_MS);
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await recorder?.close();
  await llama?.close();
});

const begin = (agent: string, content: string) => {
  const params = { channel: 'test', account: 'real', peer: `llama-${++peers}`, content, agent };
  return client.stream('chat.send', params);
};
type Frames = Awaited<ReturnType<ReturnType<typeof begin>['done']>>;
const dataOf = (frames: Frames, name: string) =>
  frames.find(({ event }) => event === name)?.data as Record<string, unknown> | undefined;
const sessionOf = (frames: Frames): string => (frames[0]?.data as { sessionId: string }).sessionId;

const lastUsage = () => reportedUsage(recorder.calls.at(-1)?.response() ?? '');

/** Expects that a session's only call is charged by the usage that the server reported. */
const expectChargedAsReported = async (frames: Frames): Promise<void> => {
  const usage = lastUsage();
  expect(usage).not.toBeNull();
  const { input = 0, output = 0 } = usage ?? {};
  expect(output).toBeGreaterThan(0);
  const shown = dataOf(frames, 'usage');
  expect(shown).not.toHaveProperty('estimated');
  expect(shown).toMatchObject({ output_tokens: output });
  const ends = await readReservationEnds(stack, sessionOf(frames));
  expect(ends).toHaveLength(1);
  // The input includes what was read from the cache, as the server counts it.
  expect(ends[0]?.data).toMatchObject({ estimated: false, inputTokens: input, outputTokens: output });
};

describe('llama.cpp', () => {
  it('streams a turn, which is charged by the usage that it reports', async () => {
    const frames = await begin('chat', 'Say hello.').done();
    expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
    expect(textOf(frames).trim()).not.toBe('');
    expect(frames.filter(({ event }) => event === 'text').length).toBeGreaterThan(0);
    await expectChargedAsReported(frames);
  });

  it('reads the turns before from its cache, which is counted as such', async () => {
    const params = { channel: 'test', account: 'real', peer: 'llama-again', agent: 'cut' };
    await client.stream('chat.send', { ...params, content: 'List ten colours.' }).done();
    const frames = await client.stream('chat.send', { ...params, content: 'List ten colours.' }).done();
    expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
    expect(Number(dataOf(frames, 'usage')?.['cache_read_tokens'])).toBeGreaterThan(0);
  });

  it('cuts an answer at its limit, which the last frame says', async () => {
    const frames = await begin('cut', 'Write a long story about the sea.').done();
    expect(frames.at(-1)?.data).toMatchObject({ status: 'completed', cut_by: 'length' });
    expect(lastUsage()?.output).toBe(CUT_TOKENS);
    await expectChargedAsReported(frames);
  });

  it('completes a turn of an agent with tools', async () => {
    const frames = await begin('tools', 'Call the calculator with 40 + 2.').done();
    expect(recorder.calls.some(({ body }) => body.includes('"calculator"'))).toBe(true);
    expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
  });

  it('has one model, which also answers to a name that it does not know', async () => {
    const frames = await begin('other-model', 'Say hello.').done();
    expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
    expect(textOf(frames).trim()).not.toBe('');
  });

  it('refuses a prompt over its window, which is charged nothing and says what to do', async () => {
    const calls = recorder.calls.length;
    const frames = await begin('chat', 'tide tables of the north sea, '.repeat(CONTEXT / 4)).done();
    const { message } = dataOf(frames, 'error') as { message: string };
    expect(message).toContain(`exceeds the available context size (${CONTEXT} tokens)`);
    expect(message).toContain('the request is longer than the model accepts');
    expect(recorder.calls.length).toBe(calls + 1);
    expect((await readReservationEnds(stack, sessionOf(frames))).map(({ type }) => type)).toEqual([
      'BudgetReleased',
    ]);
  });

  it('refuses a wrong key, which is charged nothing and said as such', async () => {
    const frames = await begin('stranger', 'hello').done();
    expect(dataOf(frames, 'error')?.['message']).toContain('the provider refused the key');
    expect((await readReservationEnds(stack, sessionOf(frames))).map(({ type }) => type)).toEqual([
      'BudgetReleased',
    ]);
  });

  it('stops at a cancellation, after which it answers the next turn', async () => {
    const stream = begin('chat', 'Count from one to a thousand, in words.');
    const { sessionId } = await waitForAccepted(stream);
    await stream.waitFor('the first text', ({ event }) => event === 'text');
    await client.call('session.cancel', { sessionId });
    expect((await stream.done()).at(-1)?.data).toMatchObject({ status: 'cancelled' });
    await recorder.calls.at(-1)?.closed;
    const frames = await begin('cut', 'Say hello.').done();
    expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
  });
});
