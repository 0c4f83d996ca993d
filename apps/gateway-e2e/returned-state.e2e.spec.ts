import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, textOf, type SocketClient } from '@antiphon/testing/client';
import { startHttpProvider, startMockModel } from '@antiphon/testing/providers';
import type { HttpProvider, MockModel, MockScript, SeenRequest } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import { readEvents, runCli, startStackWith, twoVendorConfig, waitForRoot } from './stack-under-test.js';

jest.setTimeout(120_000);

const REFUSED: MockScript = () => ({ status: 500, body: {} });
let script: MockScript = REFUSED;
let mock: MockModel;
let gemini: HttpProvider;
let answerOfGemini: (seen: SeenRequest) => string | null | Promise<string | null>;
let stack: TestStack;
let client: SocketClient;
let peers = 0;

const AGENTS = `
[[agents]]
id = "both"
workspace = "*"
provider = "anthropic"
model = "claude-sonnet-4"
tools = ["echo"]
fallback = { provider = "openai", model = "gpt-4o" }

[[providers]]
name = "deepseek"
kind = "openai-compatible"
base_url = "MOCK/v1"

[[agents]]
id = "deep"
workspace = "*"
provider = "deepseek"
model = "deepseek-v4-pro"
tools = ["echo"]

[[agents]]
id = "thinker"
workspace = "*"
provider = "anthropic"
model = "claude-sonnet-4-5"
thinking = 2048
temperature = 0.5

[[providers]]
name = "gemini"
kind = "gemini"
base_url = "GEMINI/v1beta"
api_key_env = "E2E_PROVIDER_KEY"

[[agents]]
id = "gem"
workspace = "*"
provider = "gemini"
model = "gemini-3-pro"
tools = ["echo"]

[[agents]]
id = "kimi"
workspace = "*"
provider = "deepseek"
model = "kimi-k2"
tools = ["echo"]
`;

beforeAll(async () => {
  mock = await startMockModel((request) => script(request));
  gemini = await startHttpProvider((seen, response) => {
    void Promise.resolve(answerOfGemini(seen)).then((body) => {
      const status = body === null ? 400 : 200;
      response.writeHead(status, { 'content-type': 'text/event-stream' }).end(body ?? '');
    });
  });
  const agents = AGENTS.replace('MOCK', mock.url).replace('GEMINI', gemini.url);
  const config = twoVendorConfig(mock.url) + agents;
  stack = await startStackWith(config, {}, { shareDatabase: true });
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
  await gemini?.close();
});

const chat = (agent: string, content: string, peer = `state-${++peers}`) =>
  client.stream('chat.send', { channel: 'test', account: 'e2e', peer, content, agent });

/** Text that a rule of storage, or a second rendering, could change. */
const THOUGHT = 'I "look" \\ at \u2028 it: \u0001 \ud83c 🎉';
const SIGNED = { type: 'thinking', thinking: THOUGHT, signature: 'EqQBCkgIARABGAIiQL+/w==' };
const REDACTED = { type: 'redacted_thinking', data: 'gAAAAABo+/Zm9v==' };
const USE = { type: 'tool_use', id: 'toolu_1', name: 'echo', input: { say: 'hi' } };

const sse = (events: readonly Readonly<Record<string, unknown>>[]): string =>
  events
    .map(
      (data) =>
        `${'type' in data ? `event: ${String(data['type'])}\n` : ''}data: ${JSON.stringify(data)}\n\n`,
    )
    .join('');

const signedStream = (): string =>
  sse([
    { type: 'message_start', message: { model: 'claude', usage: { input_tokens: 5 } } },
    {
      type: 'content_block_start',
      index: 0,
      content_block: { type: 'thinking', thinking: '', signature: '' },
    },
    ...[THOUGHT.slice(0, 9), THOUGHT.slice(9)].map((thinking) => ({
      ...{ type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking } },
    })),
    {
      ...{ type: 'content_block_delta', index: 0 },
      delta: { type: 'signature_delta', signature: SIGNED.signature },
    },
    { type: 'content_block_stop', index: 0 },
    { type: 'content_block_start', index: 1, content_block: REDACTED },
    { type: 'content_block_stop', index: 1 },
    { type: 'content_block_start', index: 2, content_block: USE },
    { type: 'content_block_stop', index: 2 },
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9 } },
    { type: 'message_stop' },
  ]);

const reasoningStream = (id: string): string => {
  const call = { index: 0, id, type: 'function', function: { name: 'echo', arguments: '{"say":"hi"}' } };
  const deltas = [{ reasoning_content: 'let me ' }, { reasoning_content: 'see' }, { tool_calls: [call] }];
  const chunks = [...deltas.map((delta) => ({ delta })), { delta: {}, finish_reason: 'tool_calls' }];
  return `${sse(chunks.map((choice) => ({ choices: [{ index: 0, ...choice }] })))}data: [DONE]\n\n`;
};

type Message = Readonly<Record<string, unknown>>;
const messagesOf = (index: number): readonly Message[] =>
  (mock.calls.at(index)?.seen.body as { messages: readonly Message[] }).messages;
const answersOf = (index: number) => messagesOf(index).filter(({ role }) => role === 'assistant');

/** A vendor that refuses a request without the blocks that it signed, exactly as it sent them. */
const strictVendor: MockScript = ({ toolResults, seen }) => {
  if (toolResults.length === 0) return { raw: signedStream() };
  const { messages } = seen.body as { messages: readonly Message[] };
  const isExact = JSON.stringify(messages.at(-2)?.['content']) === JSON.stringify([SIGNED, REDACTED, USE]);
  const error = { type: 'invalid_request_error', message: 'Expected `thinking` or `redacted_thinking`' };
  return isExact ? { text: ['done'] } : { status: 400, body: { type: 'error', error } };
};

describe('signed and redacted thinking', () => {
  // @shows U10
  it('is sent back byte for byte with the tool’s result, and not in the next turn', async () => {
    script = strictVendor;
    const frames = await chat('claude', 'go', 'signed').done();
    expect(textOf(frames)).toBe('done');
    const thoughts = frames.filter(({ event }) => event === 'thought').map(({ data }) => data);
    expect(thoughts.join('')).toBe(THOUGHT.toWellFormed());
    script = () => ({ text: ['later'] });
    await chat('claude', 'and now?', 'signed').done();
    expect(answersOf(-1)[0]?.['content']).toEqual([USE]);
  });

  it('is sent back byte for byte by the next process after kill -9 behind the tool’s step', async () => {
    const pid = stack.stackJson().services.agent[0]?.pid ?? 0;
    let isKilled = false;
    script = async (request) => {
      if (request.toolResults.length === 0 || isKilled) return strictVendor(request);
      isKilled = true;
      process.kill(pid, 'SIGKILL');
      await request.seen.closed;
      return REFUSED(request);
    };
    const frames = await chat('claude', 'go').done();
    expect(isKilled).toBe(true);
    expect(textOf(frames)).toBe('done');
    expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
  });

  it('of over a mebibyte ends its turn clearly before the tool runs, and not the agent', async () => {
    const data = 'x'.repeat(600_000);
    script = () => {
      const [block, end] = [0, 1].map((index) =>
        sse([{ type: 'content_block_start', index, content_block: { ...REDACTED, data } }]),
      );
      return { raw: `${block}${end}${signedStream().replaceAll('"index":', '"index":1')}` };
    };
    const frames = await chat('claude', 'go', 'large').done();
    expect(frames.map(({ event }) => event)).not.toContain('tool_use');
    expect(frames.find(({ event }) => event === 'error')?.data).toMatchObject({ code: 'PROVIDER.PROTOCOL' });
    script = () => ({ text: ['fine'] });
    expect(textOf(await chat('claude', 'again', 'large').done())).toBe('fine');
  });

  it('is not sent to the vendor of the fallback', async () => {
    script = (request) => {
      if (request.format === 'openai') return { text: ['from the other'] };
      return request.toolResults.length === 0 ? { raw: signedStream() } : { status: 401, body: {} };
    };
    const frames = await chat('both', 'go').done();
    expect(textOf(frames)).toBe('from the other');
    const text = JSON.stringify(mock.calls.at(-1)?.seen.body);
    for (const part of [SIGNED.signature, REDACTED.data, 'thinking', 'I \\"look'])
      expect(text).not.toContain(part);
  });
});

describe('a thought signature of Gemini', () => {
  // https://ai.google.dev/gemini-api/docs/thought-signatures
  const PARTS = [
    { text: 'I "look" \\ at \u2028 it.', thought: true, thoughtSignature: 'CiQB+/Zm9v==' },
    { text: 'Looking.' },
    {
      functionCall: { id: 'fc/1', name: 'echo', args: { say: 'hi' } },
      thoughtSignature: 'EqQBCkgIARABGAIiQL+/w==',
    },
  ];
  const streamOf = (parts: readonly object[]): string =>
    sse(
      parts.map((part, index) => ({
        candidates: [
          {
            content: { role: 'model', parts: [part] },
            ...(index === parts.length - 1 ? { finishReason: 'STOP' } : {}),
          },
        ],
        usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 9, totalTokenCount: 14 },
      })),
    );
  const contentsOf = ({ body }: SeenRequest) =>
    (body as { contents: readonly { role: string; parts: readonly object[] }[] }).contents;
  const hasResult = (seen: SeenRequest): boolean =>
    contentsOf(seen).some(({ parts }) => parts.some((part) => 'functionResponse' in part));

  /** Refuses a request whose call lacks its signature, or whose parts differ from what it sent. */
  const strictGemini = (seen: SeenRequest): string | null => {
    if (!hasResult(seen)) return streamOf(PARTS);
    const isExact = JSON.stringify(contentsOf(seen).at(-2)?.parts) === JSON.stringify(PARTS);
    return isExact ? streamOf([{ text: 'done' }]) : null;
  };

  it('is sent back byte for byte with its call, also by the next process after kill -9', async () => {
    const pid = stack.stackJson().services.agent[0]?.pid ?? 0;
    let isKilled = false;
    answerOfGemini = async (seen) => {
      if (!hasResult(seen) || isKilled) return strictGemini(seen);
      isKilled = true;
      process.kill(pid, 'SIGKILL');
      await seen.closed;
      return null;
    };
    const frames = await chat('gem', 'go', 'gem').done();
    expect(isKilled).toBe(true);
    expect(textOf(frames)).toBe('Looking.done');
    expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
  });

  it('is not sent in the next turn', async () => {
    answerOfGemini = () => streamOf([{ text: 'later' }]);
    expect(textOf(await chat('gem', 'and now?', 'gem').done())).toBe('later');
    const sent = JSON.stringify(gemini.requests.at(-1)?.body);
    for (const { thoughtSignature } of PARTS.filter((part) => 'thoughtSignature' in part))
      expect(sent).not.toContain(thoughtSignature);
  });
});

describe('reasoning text', () => {
  // @shows U08
  it('is sent back with the id of its call until the turn ends', async () => {
    script = ({ toolResults }) =>
      toolResults.length === 0 ? { raw: reasoningStream('functions.echo:0') } : { text: ['done'] };
    expect(textOf(await chat('kimi', 'go', 'kimi').done())).toBe('done');
    expect(messagesOf(-1).slice(-2)).toMatchObject([
      { reasoning_content: 'let me see', content: null, tool_calls: [{ id: 'functions.echo:0' }] },
      { role: 'tool', tool_call_id: 'functions.echo:0' },
    ]);
    script = () => ({ text: ['later'] });
    await chat('kimi', 'and now?', 'kimi').done();
    expect(answersOf(-1)[0]).not.toHaveProperty('reasoning_content');
  });

  it('is sent back in later turns where the vendor wants it', async () => {
    script = ({ toolResults }) =>
      toolResults.length === 0 ? { raw: reasoningStream('call_1') } : { text: ['done'] };
    await chat('deep', 'go', 'deep').done();
    script = () => ({ text: ['later'] });
    await chat('deep', 'and now?', 'deep').done();
    expect(answersOf(-1)).toMatchObject([{ reasoning_content: 'let me see' }, { content: 'done' }]);
  });
});

describe('thinking that an agent asks for', () => {
  it('is in the request, within a reservation that has room for it', async () => {
    script = () => ({ thought: ['hm'], text: ['done'], usage: { inputTokens: 5, outputTokens: 900 } });
    const frames = await chat('thinker', 'go').done();
    expect(mock.calls.at(-1)?.seen.body).toMatchObject({
      thinking: { type: 'enabled', budget_tokens: 2_048 },
      max_tokens: 16_384 + 2_048,
    });
    expect(mock.calls.at(-1)?.seen.body).not.toHaveProperty('temperature');
    const shown = frames.filter(({ event }) => event === 'thought' || event === 'usage');
    expect(shown.map(({ data }) => data)).toMatchObject(['hm', { output_tokens: 900 }]);
  });
});

describe('a parameter that the vendor refuses by its name', () => {
  // @shows U07
  it('is omitted at once, is charged once, and is not sent again', async () => {
    script = ({ seen }) => {
      const message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.";
      return 'max_tokens' in (seen.body as object)
        ? { status: 400, body: { error: { message, param: 'max_tokens' } } }
        : { text: ['fine'] };
    };
    const before = mock.calls.length;
    const frames = await chat('kimi', 'one', 'gpt-5').done();
    expect(textOf(frames)).toBe('fine');
    expect(mock.calls.length - before).toBe(2);
    const { sessionId } = frames[0]?.data as { sessionId: string };
    const reserved = (await readEvents(stack, { type: 'BudgetReserved' })).filter(
      ({ data }) => data['sessionId'] === sessionId,
    );
    expect(reserved).toHaveLength(1);
    await chat('kimi', 'two', 'gpt-5').done();
    expect(mock.calls.length - before).toBe(3);
  });
});

describe('the log of such turns', () => {
  it('replays to the same events, also from an export', async () => {
    script = strictVendor;
    const frames = await chat('claude', 'go').done();
    const { sessionId } = frames[0]?.data as { sessionId: string };
    const replay = await runCli(stack, ['session', 'replay', sessionId, '--strict']);
    expect([replay.code, replay.stdout]).toEqual([0, expect.any(String)]);
    const exported = await runCli(stack, ['session', 'export', sessionId]);
    expect(exported.stdout).toContain(SIGNED.signature);
  });

  it('is one that the audit accepts', async () => {
    await waitForRoot(stack);
    const { code, stdout } = await runCli(stack, ['audit']);
    expect([code, stdout]).toEqual([0, expect.stringContaining('everything holds')]);
  });
});
