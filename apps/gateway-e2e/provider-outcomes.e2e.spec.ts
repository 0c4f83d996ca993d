import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, textOf, type SocketClient } from '@antiphon/testing/client';
import { openAiStream, startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import { FakeRouter, describeLateUsage, routerConfig } from './describe-late-usage.js';
import {
  readEvents,
  runCli,
  startStackWith,
  twoVendorConfig,
  waitForRoot,
  waitForValue,
} from './stack-under-test.js';

jest.setTimeout(120_000);

let script: MockScript = () => ({ text: ['fine'] });
let mock: MockModel;
let router: FakeRouter;
let stack: TestStack;
let client: SocketClient;
let peers = 0;

/** A call's bound is some 25 cents, so that a few charges would use up the day. */
const LIMITS = `
[budgets]
daily_usd = 2.00
`;

beforeAll(async () => {
  mock = await startMockModel((request) => script(request));
  router = await FakeRouter.start();
  const config = `${LIMITS}${twoVendorConfig(mock.url)}${routerConfig(router.provider.url)}`;
  stack = await startStackWith(config, {}, { shareDatabase: true });
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
  await router?.provider.close();
});

/** Sends a message of a new session. Returns its frames and the number of the provider's calls. */
const send = async (agent: string, content = 'hello') => {
  const before = mock.calls.length;
  const params = { channel: 'test', account: 'e2e', peer: `outcome-${++peers}`, content, agent };
  const frames = await client.stream('chat.send', params).done();
  const { sessionId } = frames[0]?.data as { sessionId: string };
  return { frames, sessionId, calls: mock.calls.length - before };
};

/** Waits until every reservation of a session has its end. Returns the types and data of the ends. */
const endsOf = (sessionId: string) =>
  waitForValue('the end of each reservation', async () => {
    const events = (await readEvents(stack, { category: 'budget' })).filter(({ type }) =>
      /^Budget(?:Reserved|Settled|Released|Expired)$/.test(type),
    );
    const own = new Set(
      events
        .filter(({ type, data }) => type === 'BudgetReserved' && data['sessionId'] === sessionId)
        .map(({ data }) => data['reservationId']),
    );
    const ends = events.filter(
      ({ type, data }) => type !== 'BudgetReserved' && own.has(data['reservationId']),
    );
    return own.size > 0 && ends.length === own.size ? ends : undefined;
  });

const refusal =
  (status: number, error: object): MockScript =>
  () => ({ status, body: { error } });

/** A stream that begins with an error instead of an answer. */
const errorEvent: MockScript = ({ format }) => {
  const error = { type: 'invalid_request_error', message: 'not like this' };
  const data = JSON.stringify(format === 'anthropic' ? { type: 'error', error } : { error });
  return { raw: `event: error\ndata: ${data}\n\n` };
};

describe('a call that the provider refuses', () => {
  // @shows U71
  it.each([
    ['a wrong key', 401, { message: 'Incorrect API key provided' }, 'the provider refused the key', 1],
    ['no credit', 402, { message: 'Insufficient credits' }, 'no credit', 1],
    ['a used up quota', 429, { message: 'quota', code: 'insufficient_quota' }, 'no credit', 1],
    ['an unknown model', 404, { message: 'no such model' }, 'check the name of the model and base_url', 1],
    ['an unsupported parameter', 400, { message: 'Unsupported parameter: x' }, 'does not accept', 1],
    ['an overload', 503, { message: 'busy' }, 'provider error 503: busy', 3],
  ])('by %s is charged nothing, and says so (status %i)', async (_why, status, error, text, calls) => {
    for (const agent of ['claude', 'gpt']) {
      script = refusal(status, error);
      const turn = await send(agent);
      expect(turn.calls).toBe(calls);
      const failure = turn.frames.find(({ event }) => event === 'error')?.data as { message: string };
      expect(failure.message).toContain(text);
      if (calls === 1) expect(failure.message).toContain(new URL(mock.url).host);
      expect(turn.frames.at(-1)?.data).toMatchObject({ status: 'failed' });
      const ends = await endsOf(turn.sessionId);
      expect(ends.map(({ type, data }) => [type, data['reason']])).toEqual(
        Array(calls).fill(['BudgetReleased', 'refused']),
      );
    }
  });

  it('by an error event within a stream is charged nothing', async () => {
    script = errorEvent;
    for (const agent of ['claude', 'gpt']) {
      const { frames, calls, sessionId } = await send(agent);
      expect(calls).toBe(1);
      expect(frames.find(({ event }) => event === 'error')?.data).toMatchObject({
        message: 'provider error in the stream: not like this',
      });
      expect((await endsOf(sessionId)).map(({ type }) => type)).toEqual(['BudgetReleased']);
    }
  });

  it('uses nothing of a day limit, however often it is made', async () => {
    script = refusal(401, { message: 'no' });
    for (let n = 0; n < 20; n += 1) await send('claude');
    script = () => ({ text: ['fine'] });
    const { frames } = await send('claude');
    expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
  });
});

interface Usage {
  readonly total: Readonly<Record<string, number>>;
}
const readUsage = async (): Promise<Usage> =>
  (await (await fetch(`${stack.gatewayUrl}/api/v1/usage?by=model`)).json()) as Usage;

/** Returns the data of the charge of a session's only call, and of its usage frame. */
const chargeOf = async (agent: string) => {
  const { frames, sessionId } = await send(agent);
  const [end] = await endsOf(sessionId);
  return { end: end?.data, frame: frames.find(({ event }) => event === 'usage')?.data };
};

describe('the usage of a call', () => {
  // @shows U72
  it.each([null, { inputTokens: 7, outputTokens: 3 }])(
    'is marked as an estimate in frames and sums where the provider reported %j',
    async (usage) => {
      script = () => ({ text: ['two words'], usage });
      for (const agent of ['claude', 'gpt']) {
        const before = (await readUsage()).total;
        const { end, frame } = await chargeOf(agent);
        expect('estimated' in (frame as object)).toBe(usage === null);
        expect(end).toMatchObject({ estimated: usage === null, outputTokens: 3 });
        const after = await readUsage();
        const estimated = Number(after.total['estimatedMicroUsd']) - Number(before['estimatedMicroUsd']);
        expect(estimated).toBe(usage === null ? end?.['microUsd'] : 0);
      }
    },
  );

  // @shows U33
  it.each([
    ['claude', { inputTokens: 3, cacheWriteTokens: 12_304, outputTokens: 550 }, 54_399],
    ['claude', { inputTokens: 4, cacheReadTokens: 12_304, outputTokens: 550 }, 11_953],
    ['gpt', { inputTokens: 10_000, cacheReadTokens: 9_984, outputTokens: 100 }, 13_520],
  ] as const)('of %s with cached input, %j, costs %d micro-USD', async (agent, usage, microUsd) => {
    script = () => ({ text: ['fine'], usage });
    const { end, frame } = await chargeOf(agent);
    const { inputTokens: _fresh, outputTokens, ...cached } = usage;
    expect(end).toMatchObject({ microUsd, outputTokens, ...cached });
    expect(frame).toMatchObject({ cost_usd: microUsd / 1e6, output_tokens: outputTokens });
    const read = 'cacheReadTokens' in usage ? usage.cacheReadTokens : undefined;
    expect((frame as Record<string, unknown>)['cache_read_tokens']).toBe(read);
    const { total } = await readUsage();
    expect(total['cacheWriteTokens']).toBe(12_304);
  });

  // @shows U36
  it('of a cancelled stream is the input that the vendor reported, and the limit of the output', async () => {
    script = () => ({
      reply: { text: ['one ', 'two'], usage: { inputTokens: 1_000, outputTokens: 9 } },
      before: (piece) => (piece.includes('two') ? mock.calls.at(-1)?.seen.closed : undefined),
    });
    const params = { channel: 'test', account: 'e2e', peer: `outcome-${++peers}`, content: 'hello' };
    const stream = client.stream('chat.send', { ...params, agent: 'claude' });
    const accepted = await stream.waitFor('accepted', ({ event }) => event === 'accepted');
    await stream.waitFor('the first text', ({ event }) => event === 'text');
    const { sessionId } = accepted.data as { sessionId: string };
    await client.call('session.cancel', { sessionId });
    expect((await stream.done()).at(-1)?.data).toMatchObject({ status: 'cancelled' });
    const [end] = await endsOf(sessionId);
    const bounds = await readEvents(stack, { type: 'BudgetReserved' });
    const reserved = bounds.find(({ data }) => data['sessionId'] === sessionId);
    const outputTokens = Number(reserved?.data['outputBound']);
    expect(end?.data).toMatchObject({
      ...{ inputTokens: 1_000, outputTokens, microUsd: 3_000 + outputTokens * 15, estimated: true },
    });
  });
});

describe('an answer that ends early', () => {
  // @shows U69
  it('by its output limit completes the turn, and its last frame says so', async () => {
    script = () => ({ text: ['half a sen'], cutBy: 'length' });
    for (const agent of ['claude', 'gpt']) {
      const { frames } = await send(agent);
      expect(textOf(frames)).toBe('half a sen');
      expect(frames.at(-1)?.data).toMatchObject({ status: 'completed', cut_by: 'length' });
    }
    const { stdout, stderr } = await runCli(stack, ['chat', 'again', '--agent', 'gpt']);
    expect(stdout.trim()).toBe('half a sen');
    expect(stderr).toContain('[cut: the answer reached its output limit]');
  });

  // @shows U21
  it('within its tool calls runs all but the last one', async () => {
    const tools = ['1 + 1', '2 + 2'].map((expression, n) => ({
      ...{ id: `call_${n}`, name: 'calculator', input: { expression } },
    }));
    script = ({ toolResults }) =>
      toolResults.length > 0 ? { text: [toolResults.join(' | ')] } : { tools, cutBy: 'length' };
    for (const agent of ['claude', 'gpt']) {
      const { frames } = await send(agent);
      const results = frames.filter(({ event }) => event === 'tool_result').map(({ data }) => data);
      expect(results).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ content: '2', is_error: false }),
          expect.objectContaining({
            content: expect.stringContaining('the tool was not run: the answer reached its length limit'),
            is_error: true,
          }),
        ]),
      );
      expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
    }
  });
});

describe('a tool call whose arguments are unusable', () => {
  // @shows U02
  it('is an error that the model reads, and the turn continues', async () => {
    script = ({ toolResults, seen }) => {
      if (toolResults.length > 0) return { text: [`read: ${toolResults[0]}`] };
      const [first, ...rest] = openAiStream('m', {
        tools: [{ id: 'call_1', name: 'calculator', input: 'XX' }],
      });
      expect(seen.path).toContain('chat/completions');
      return { raw: [first, ...rest].join('').replaceAll('XX', '[1') };
    };
    const { frames, calls } = await send('gpt');
    expect(calls).toBe(2);
    expect(textOf(frames)).toContain('read: Error: the tool was not run: its arguments are not');
    expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
  });
});

describeLateUsage({ stack: () => stack, router: () => router, send });

it('leaves a log that the audit accepts', async () => {
  await waitForRoot(stack);
  const { code, stdout } = await runCli(stack, ['audit']);
  expect([code, stdout]).toEqual([0, expect.stringContaining('everything holds')]);
});
