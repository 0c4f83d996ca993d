import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, textOf, type SocketClient } from '@antiphon/testing/client';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import { report } from '@antiphon/testing/load';
import type { TestStack } from '@antiphon/testing/stack';
import { litellmVersion, startLitellm } from '../../../benchmarks/lib/litellm.mjs';
import { startStackWith, waitForAccepted, waitForValue } from '../stack-under-test.js';
import { readReservationEnds, reportedUsage, startRecorder, type Recorder } from './record-server.js';

/* LiteLLM as its users install it. It passes calls on to a model of this spec. */
jest.setTimeout(1_800_000);
/** Time to install the server once. */
const INSTALL_MS = 3_600_000;

const configFor = (url: string): string => `
[gateway]
port = 0

[[providers]]
name = "litellm"
kind = "openai-compatible"
base_url = "${url}/v1"
api_key_env = "REAL_KEY"

[[providers]]
name = "messages"
kind = "anthropic"
base_url = "${url}"
api_key_env = "REAL_KEY"

[[providers]]
name = "stranger"
kind = "openai-compatible"
base_url = "${url}/v1"
api_key_env = "WRONG_KEY"

[[agents]]
id = "chat"
provider = "litellm"
model = "mock"
tools = ["calculator"]

[[agents]]
id = "messages"
provider = "messages"
model = "claude-mock"
tools = ["calculator"]

[[agents]]
id = "stranger"
provider = "stranger"
model = "mock"

[[agents]]
id = "unknown-model"
provider = "litellm"
model = "no-such-model"
`;

let script: MockScript = () => ({ text: ['fine'] });
let mock: MockModel;
let litellm: Awaited<ReturnType<typeof startLitellm>>;
let recorder: Recorder;
let stack: TestStack;
let client: SocketClient;
let peers = 0;
beforeAll(async () => {
  mock = await startMockModel((request) => script(request));
  litellm = await startLitellm(mock.url);
  recorder = await startRecorder(litellm.baseUrl.replace(/\/v1$/, ''));
  const env = { REAL_KEY: litellm.key, WRONG_KEY: 'sk-of-another-proxy-0123456789' };
  stack = await startStackWith(configFor(recorder.url), {}, { shareDatabase: true, env });
  client = await connectClient(stack.wsUrl);
  report(`LiteLLM ${litellmVersion()}`);
}, INSTALL_MS);
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await recorder?.close();
  await litellm?.close();
  await mock?.close();
});

const begin = (agent: string, content: string) => {
  const params = { channel: 'test', account: 'real', peer: `real-${++peers}`, content, agent };
  return client.stream('chat.send', params);
};
type Frames = Awaited<ReturnType<ReturnType<typeof begin>['done']>>;
const errorOf = (frames: Frames) =>
  frames.find(({ event }) => event === 'error')?.data as { code: string; message: string };

const sessionOf = (frames: Frames): string => (frames[0]?.data as { sessionId: string }).sessionId;

describe.each([
  ['chat completions', 'chat'],
  ['Messages', 'messages'],
])('LiteLLM by its %s', (_format, agent) => {
  it('streams a turn, whose usage is what it reports', async () => {
    script = () => ({
      text: ['Low ', 'tide at ', '6:10 — 低潮 🌊'],
      usage: { inputTokens: 123, outputTokens: 45 },
    });
    const frames = await begin(agent, 'when').done();
    expect(textOf(frames)).toBe('Low tide at 6:10 — 低潮 🌊');
    expect(frames.filter(({ event }) => event === 'text').length).toBeGreaterThan(0);
    const usage = reportedUsage(recorder.calls.at(-1)?.response() ?? '');
    expect(usage).not.toBeNull();
    expect(frames.find(({ event }) => event === 'usage')?.data).toMatchObject({
      ...{ input_tokens: usage?.input, output_tokens: usage?.output },
    });
    const [end] = await readReservationEnds(stack, sessionOf(frames));
    expect(end?.data).toMatchObject({
      ...{ estimated: false, inputTokens: usage?.input, outputTokens: usage?.output },
    });
  });

  it('calls a tool, and gets its result', async () => {
    script = ({ toolResults }) =>
      toolResults.length === 0
        ? { tools: [{ id: 'call_1', name: 'calculator', input: { expression: '40 + 2' } }] }
        : { text: [`it is ${toolResults.at(-1)}`] };
    const frames = await begin(agent, 'calculate').done();
    expect(textOf(frames)).toBe('it is 42');
    expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
  });

  it('sees the end of a cancelled stream, which is charged as an estimate', async () => {
    script = () => ({
      reply: { text: ['one ', 'two'] },
      before: (piece) => (piece.includes('two') ? mock.calls.at(-1)?.seen.closed : undefined),
    });
    const stream = begin(agent, 'count');
    const { sessionId } = await waitForAccepted(stream);
    await stream.waitFor('the first text', ({ event }) => event === 'text');
    await client.call('session.cancel', { sessionId });
    expect((await stream.done()).at(-1)?.data).toMatchObject({ status: 'cancelled' });
    await recorder.calls.at(-1)?.closed;
    const [end] = await readReservationEnds(stack, sessionId);
    expect(end).toMatchObject({ type: 'BudgetSettled', data: { estimated: true } });
  });
});

describe('LiteLLM', () => {
  it('refuses a wrong key, which is charged nothing and said as such', async () => {
    const frames = await begin('stranger', 'hello').done();
    expect(errorOf(frames).message).toContain('the provider refused the key');
    expect((await readReservationEnds(stack, sessionOf(frames))).map(({ type }) => type)).toEqual([
      'BudgetReleased',
    ]);
  });

  it('refuses an unknown model, which is charged nothing and named', async () => {
    const frames = await begin('unknown-model', 'hello').done();
    expect(errorOf(frames).message).toMatch(/check the name of the model.*no-such-model/);
    expect((await readReservationEnds(stack, sessionOf(frames))).map(({ type }) => type)).toEqual([
      'BudgetReleased',
    ]);
  });

  it('passes on a refusal of the vendor behind it, after which a turn completes', async () => {
    script = () => ({ status: 429, body: { error: { message: 'slow down', type: 'rate_limit_error' } } });
    const frames = await begin('chat', 'hello').done();
    expect(errorOf(frames).message).toContain('429');
    expect(new Set((await readReservationEnds(stack, sessionOf(frames))).map(({ type }) => type))).toEqual(
      new Set(['BudgetReleased']),
    );
    script = () => ({ text: ['fine'] });
    // LiteLLM may hold a model back for some seconds after an error of its vendor.
    await waitForValue('the next answer', async () =>
      textOf(await begin('chat', 'hello').done()) === 'fine' ? true : undefined,
    );
  });
});
