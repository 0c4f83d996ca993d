import { describe, expect, it } from '@jest/globals';
import type { ModelFailure } from '@antiphon/providers-domain';
import { type ModelAnswer, type ModelMessage, type ModelRequest } from '@antiphon/providers-domain';
import { TEST_LIMITS } from '../testing/limits.js';
import type { ProviderAdapter } from '../transport/provider-call.js';
import { parseScenario } from './scenario.js';
import { createScriptedAdapter } from './scripted.adapter.js';

const environment = {
  limitsOf: () => ({ ...TEST_LIMITS, idleMs: 200 }),
  redact: (text: string) => text,
  now: () => 0,
};
const adapterFor = (...replies: unknown[]): ProviderAdapter => {
  if (replies.length === 0) return createScriptedAdapter(environment, () => undefined);
  const parsed = parseScenario(JSON.stringify({ version: 1, replies }));
  if (!parsed.ok) throw new Error(parsed.problem);
  return createScriptedAdapter(environment, () => parsed.scenario);
};

const ask = async (
  adapter: ProviderAdapter,
  messages: readonly ModelMessage[] | string,
  more: Partial<ModelRequest> = {},
) => {
  const deltas: string[] = [];
  const request: ModelRequest = {
    provider: 'scripted',
    model: 'scripted',
    system: 'You are here.',
    messages: typeof messages === 'string' ? [{ role: 'user', text: messages }] : messages,
    tools: [],
    maxOutputTokens: 1_000,
    signal: new AbortController().signal,
    streaming: true,
    ...more,
  };
  const result = await adapter
    .complete(request, { onText: (delta) => void deltas.push(delta), onThought: () => undefined })
    .catch((error: unknown) => error as ModelFailure);
  return { result: result as ModelAnswer & ModelFailure, deltas, bound: adapter.inputBound(request) };
};

const afterTools = (
  question: string,
  answers: readonly (readonly [string, string, boolean?])[],
): ModelMessage[] => [
  { role: 'user', text: 'earlier' },
  { role: 'assistant', text: 'yes', toolCalls: [] },
  { role: 'user', text: question },
  {
    role: 'assistant',
    text: '',
    toolCalls: answers.map(([name], index) => ({ id: `c${index}`, name, input: {} })),
  },
  {
    role: 'tool',
    results: answers.map(([name, content, isError], index) => ({
      id: `c${index}`,
      name,
      content,
      isError: isError ?? false,
    })),
  },
];

describe('the scripted provider', () => {
  it('echoes the user message word by word after its label', async () => {
    const { result, deltas } = await ask(adapterFor(), 'Hello, wörld  again\n🎉');
    expect(result).toMatchObject({
      text: '[scripted] Hello, wörld  again\n🎉',
      finishReason: 'stop',
      toolCalls: [],
    });
    expect(deltas).toEqual(['[scripted] Hello, ', 'wörld  ', 'again\n', '🎉']);
  });

  it('returns the same answer for the same request', async () => {
    const adapter = adapterFor();
    expect((await ask(adapter, 'again')).result).toEqual((await ask(adapter, 'again')).result);
  });

  it('counts four bytes a token, and its bound is that count', async () => {
    const { result, bound } = await ask(adapterFor(), 'hi');
    expect(result.usage).toEqual({ inputTokens: bound, outputTokens: 4 });
  });

  it('stops at the granted tokens, between two characters', async () => {
    const { result } = await ask(adapterFor(), 'ééééééééé', { maxOutputTokens: 4 });
    expect(result).toMatchObject({
      text: '[scripted] éé',
      finishReason: 'length',
      usage: { outputTokens: 4 },
    });
  });

  it('requests the tools of /tool lines in parallel', async () => {
    const { result } = await ask(adapterFor(), 'please\n/tool echo {"a":[1]}\n  no /tool here\n/tool now');
    expect(result).toMatchObject({
      text: '',
      finishReason: 'tool_calls',
      toolCalls: [
        { providerCallId: 'scripted_1', name: 'echo', input: { a: [1] } },
        { providerCallId: 'scripted_2', name: 'now', input: {} },
      ],
    });
  });

  it('reports the results of its tools', async () => {
    const messages = afterTools('/tool echo {}\n/tool rm {}', [
      ['echo', 'hi'],
      ['rm', 'unknown tool', true],
    ]);
    expect((await ask(adapterFor(), messages)).result.text).toBe(
      '[scripted] echo answered: hi\nrm failed: unknown tool',
    );
  });

  it('takes another step at /then, with new ids for its calls', async () => {
    const messages = afterTools('/tool echo {}\n/then\n/tool calculator {"expression":"1+1"}', [
      ['echo', 'hi'],
    ]);
    expect((await ask(adapterFor(), messages)).result.toolCalls).toEqual([
      { providerCallId: 'scripted_2', name: 'calculator', input: { expression: '1+1' } },
    ]);
  });

  it.each([
    ['/tool echo {a:1', 'the input of /tool echo is not JSON'],
    ['/tool echo [1]', 'the input of /tool echo is not a JSON object'],
    ['/tool', 'say which tool: /tool NAME {"its":"input"}'],
    ['  ', '(nothing was said)'],
  ])('explains the mistake in %j', async (text, answer) => {
    expect((await ask(adapterFor(), text)).result).toMatchObject({
      text: `[scripted] ${answer}`,
      toolCalls: [],
    });
  });
});

describe('a scenario', () => {
  it('plays the first matching reply, and the built-in one otherwise', async () => {
    const adapter = adapterFor(
      {
        when: { user: 'weather', step: 1 },
        play: [{ thought: 'hm' }, { tool: { name: 'weather', input: { at: 'Rome' } } }],
      },
      {
        when: { user: 'weather', step: 2 },
        play: [{ text: 'Sunny', delayMs: 1 }, { text: '.' }],
        usage: null,
      },
    );
    expect((await ask(adapter, 'the weather?')).result).toMatchObject({
      thought: 'hm',
      toolCalls: [{ name: 'weather', input: { at: 'Rome' } }],
    });
    const second = await ask(adapter, afterTools('the weather?', [['weather', '31']]));
    expect(second.result).toMatchObject({ text: '[scripted] Sunny.', usage: null });
    expect(second.deltas).toEqual(['[scripted] Sunny', '.']);
    expect((await ask(adapter, 'else')).result.text).toBe('[scripted] else');
  });

  it('plays a failing reply a limited number of times', async () => {
    const adapter = adapterFor(
      { times: 1, play: [{ error: { status: 529, message: 'Overloaded', retryAfterMs: 5 } }] },
      { times: 1, play: [{ text: 'half' }, { error: { reason: 'provider_protocol', message: 'cut' } }] },
      { times: 1, play: [{ error: { reason: 'provider_unreachable' } }] },
    );
    expect((await ask(adapter, 'x')).result).toMatchObject({
      reason: 'provider_error',
      status: 529,
      retryable: true,
      retryAfterMs: 5,
      message: expect.stringMatching(/^provider error 529: Overloaded;.* the provider is overloaded/),
    });
    const half = await ask(adapter, 'x');
    expect(half.result).toMatchObject({ reason: 'provider_protocol', message: 'cut' });
    expect(half.deltas).toEqual(['[scripted] half']);
    expect((await ask(adapter, 'x')).result).toMatchObject({
      message: 'provider unreachable',
      dispatched: false,
    });
    expect((await ask(adapter, 'x')).result.text).toBe('[scripted] x');
  });

  it('hangs until it is cancelled or times out', async () => {
    const adapter = adapterFor({ play: [{ text: 'wait' }, { hang: true }] });
    const cancel = new AbortController();
    const running = ask(adapter, 'x', { signal: cancel.signal });
    setImmediate(() => cancel.abort());
    expect((await running).result).toMatchObject({ reason: 'cancelled', dispatched: true });
    expect((await ask(adapter, 'x')).result).toMatchObject({
      message: 'provider timeout: no further byte within 0.2 s (between_bytes_s of provider it)',
    });
  });

  it.each([
    ['{', 'is not JSON'],
    ['{"version":2,"replies":[]}', 'version: '],
    ['{"version":1,"replies":[{"play":[]}]}', 'replies.0.play: '],
    ['{"version":1,"replies":[{"play":[{"txt":"x"}]}]}', 'replies.0.play.0: '],
    ['['.repeat(100_000), 'nests deeper than 64 levels'],
  ])('is rejected with the place of the mistake: %s', (text, problem) => {
    expect(parseScenario(text)).toMatchObject({ ok: false, problem: expect.stringContaining(problem) });
  });
});
