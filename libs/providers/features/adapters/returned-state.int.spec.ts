import { afterEach, describe, expect, it } from '@jest/globals';
import type { AntiphonConfig } from '@antiphon/config';
import type { AssistantMessage, ModelAnswer, ModelMessage, ModelRequest } from '@antiphon/providers-domain';
import { startHttpProvider, type HttpProvider } from '@antiphon/testing/providers';
import { createModels, type Models } from './create-models.js';

const KEY = 'sk-state-canary-0123456789';
/** Text that a rule of storage would change: a quote, a line separator, a lone surrogate, an emoji. */
const ODD = 'let "me" \u2028 think\\n \ud83c🎉 \u0001';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const sse = (...events: readonly Readonly<Record<string, unknown>>[]): string =>
  events
    .map(
      (data) =>
        `${typeof data['type'] === 'string' ? `event: ${data['type']}\n` : ''}data: ${JSON.stringify(data)}\n\n`,
    )
    .join('');

interface Vendor {
  readonly provider: HttpProvider;
  readonly models: Models;
}

/** Starts a vendor that plays these streams, one for each request. */
const start = async (kind: string, ...streams: readonly string[]): Promise<Vendor> => {
  let next = 0;
  const provider = await startHttpProvider((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(streams[next++] ?? '');
  });
  cleanups.push(() => provider.close());
  const baseUrl = kind === 'anthropic' ? provider.url : `${provider.url}/v1`;
  const providers = [{ name: 'it', kind, baseUrl, apiKeyEnv: 'KEY' }];
  const config = { source: null, providers, parameters: [] } as unknown as AntiphonConfig;
  const models = createModels(config, { KEY });
  cleanups.push(() => models.close());
  return { provider, models };
};

const ask = (models: Models, messages: readonly ModelMessage[], more: Partial<ModelRequest> = {}) =>
  models.complete(
    {
      ...{ provider: 'it', model: 'm', system: '', messages, tools: [], maxOutputTokens: 4_096 },
      ...{ signal: new AbortController().signal, streaming: true, ...more },
    },
    { onText: () => undefined, onThought: () => undefined },
  );

const USER: ModelMessage = { role: 'user', text: 'hello' };

/** Returns the messages of the next step, as a turn builds them from its events. */
const nextStep = (answer: ModelAnswer, state: Partial<AssistantMessage> = {}): readonly ModelMessage[] => {
  const { text, thought, toolCalls, providerState } = answer;
  const ids = toolCalls.map(({ providerCallId }, index) =>
    /^[\w-]{1,64}$/.test(providerCallId) ? providerCallId : `0196a0f0-0000-7000-8000-00000000000${index}`,
  );
  const calls = toolCalls.map(({ name, input }, index) => ({
    id: ids[index] ?? '',
    name,
    input: input as never,
  }));
  const results = toolCalls.map(({ name }, index) => ({
    ...{ id: ids[index] ?? '', name, content: 'ok', isError: false },
  }));
  const own = providerState === undefined ? {} : { providerState, thought };
  return [USER, { role: 'assistant', text, toolCalls: calls, ...own, ...state }, { role: 'tool', results }];
};

const bodyOf = ({ provider }: Vendor, index: number) =>
  provider.requests[index]?.body as Record<string, unknown> & {
    readonly messages: readonly Record<string, unknown>[];
  };
const assistantOf = (vendor: Vendor, index = 1) =>
  bodyOf(vendor, index).messages.find(({ role }) => role === 'assistant');

const block = (index: number, content: object, ...deltas: readonly object[]) => [
  { type: 'content_block_start', index, content_block: content },
  ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
  { type: 'content_block_stop', index },
];
const USE = { type: 'tool_use', id: 'toolu_1', name: 'echo', input: {} };
type Events = readonly Readonly<Record<string, unknown>>[];
const anthropic = (...blocks: readonly Events[]): string =>
  sse(
    { type: 'message_start', message: { model: 'm', usage: { input_tokens: 1 } } },
    ...blocks.flat(),
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 2 } },
    { type: 'message_stop' },
  );
const DONE = anthropic(block(0, { type: 'text', text: 'done' }));

const delta = (content: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta: content, finish_reason }],
});
const call = (id: string, index = 0, more: object = {}) => ({
  tool_calls: [{ index, id, type: 'function', function: { name: 'echo', arguments: '{}' }, ...more }],
});
const openAi = (...deltas: readonly object[]): string =>
  `${sse(...deltas.map((content) => delta(content)), delta({}, 'tool_calls'))}data: [DONE]\n\n`;

describe('blocks of thinking in Anthropic’s format', () => {
  // @shows U10
  it('are sent back byte for byte, before the tool call', async () => {
    const first = anthropic(
      block(
        0,
        { type: 'thinking', thinking: '', signature: '' },
        ...[...ODD.slice(0, 5), ODD.slice(5)].map((thinking) => ({ type: 'thinking_delta', thinking })),
        { type: 'signature_delta', signature: 'EqQB+/=' },
      ),
      block(1, { type: 'redacted_thinking', data: 'gAAA+/==' }),
      block(2, { type: 'text', text: '' }, { type: 'text_delta', text: 'I will look.' }),
      block(3, USE),
    );
    const vendor = await start('anthropic', first, DONE);
    await ask(vendor.models, nextStep(await ask(vendor.models, [USER])));
    expect(JSON.stringify(assistantOf(vendor)?.['content'])).toBe(
      JSON.stringify([
        { type: 'thinking', thinking: ODD, signature: 'EqQB+/=' },
        { type: 'redacted_thinking', data: 'gAAA+/==' },
        { type: 'text', text: 'I will look.' },
        USE,
      ]),
    );
  });

  it('keep their places between texts and tool calls', async () => {
    const second = { ...USE, id: 'toolu_2' };
    const first = anthropic(
      block(0, { type: 'thinking', thinking: 'one', signature: 'a' }),
      block(1, { type: 'text', text: 'first ' }),
      block(2, USE),
      block(3, { type: 'thinking', thinking: 'two', signature: 'b' }),
      block(4, { type: 'text', text: 'second' }),
      block(5, second),
    );
    const vendor = await start('anthropic', first, DONE);
    await ask(vendor.models, nextStep(await ask(vendor.models, [USER])));
    expect(assistantOf(vendor)?.['content']).toEqual([
      { type: 'thinking', thinking: 'one', signature: 'a' },
      { type: 'text', text: 'first ' },
      USE,
      { type: 'thinking', thinking: 'two', signature: 'b' },
      { type: 'text', text: 'second' },
      second,
    ]);
  });

  it('are sent back without a signature where the server sent none', async () => {
    const first = anthropic(
      block(0, { type: 'thinking', thinking: '' }, { type: 'thinking_delta', thinking: 'hm' }),
      block(1, USE),
    );
    const vendor = await start('anthropic', first, DONE);
    await ask(vendor.models, nextStep(await ask(vendor.models, [USER])));
    expect(assistantOf(vendor)?.['content']).toEqual([{ type: 'thinking', thinking: 'hm' }, USE]);
  });

  it.each([
    ['two parts', ['EqQ', 'B+/=']],
    ['a part that repeats the first', ['EqQ', 'EqQB+/=']],
  ])('have their whole signature from %s', async (_name, parts) => {
    const deltas = parts.map((signature) => ({ type: 'signature_delta', signature }));
    const first = anthropic(
      block(0, { type: 'thinking', thinking: 'hm', signature: '' }, ...deltas),
      block(1, USE),
    );
    const vendor = await start('anthropic', first, DONE);
    await ask(vendor.models, nextStep(await ask(vendor.models, [USER])));
    expect(assistantOf(vendor)?.['content']).toContainEqual({
      ...{ type: 'thinking', thinking: 'hm', signature: 'EqQB+/=' },
    });
  });

  it('are dropped, never changed, where one holds a secret', async () => {
    const first = anthropic(
      block(0, { type: 'thinking', thinking: `the key ${KEY} is`, signature: 's' }),
      block(1, USE),
    );
    const vendor = await start('anthropic', first, DONE);
    const answer = await ask(vendor.models, [USER]);
    expect(JSON.stringify(answer)).not.toContain(KEY);
    expect(answer.providerState).toBeUndefined();
  });

  it('are no state of an answer without a tool call', async () => {
    const vendor = await start(
      'anthropic',
      anthropic(
        block(0, { type: 'thinking', thinking: 'a', signature: 'b' }),
        block(1, { type: 'text', text: 'c' }),
      ),
    );
    expect((await ask(vendor.models, [USER])).providerState).toBeUndefined();
  });

  it('of another format, or of a text that is not theirs, are left out', async () => {
    const vendor = await start('anthropic', DONE, DONE, DONE);
    const answer = { text: '', thought: '', finishReason: 'stop', usage: null } as const;
    const toolCalls = [{ providerCallId: 'toolu_1', name: 'echo', input: {} }];
    const states = ['{"openai":{}}', 'not json', '{"anthropic":[{"thinking":9,"block":{}}]}'];
    for (const [index, providerState] of states.entries()) {
      await ask(vendor.models, nextStep({ ...answer, toolCalls }, { providerState, thought: '' }));
      expect(assistantOf(vendor, index)?.['content']).toEqual([USE]);
    }
  });
});

describe('reasoning in OpenAI’s format', () => {
  // @shows U08
  it.each(['reasoning_content', 'reasoning'])('is sent back as %s', async (field) => {
    const first = openAi({ [field]: 'let me ' }, { [field]: 'see' }, call('call_1'));
    const vendor = await start('openai-compatible', first, openAi({ content: 'x' }));
    const answer = await ask(vendor.models, [USER]);
    await ask(vendor.models, nextStep(answer));
    expect(assistantOf(vendor)).toMatchObject({ content: null, [field]: 'let me see' });
    expect(answer.thought).toBe('let me see');
    // The event has the thought already.
    expect(answer.providerState).not.toContain('let me');
  });

  it('of OpenRouter is sent back as its details, joined from their pieces', async () => {
    const format = 'anthropic-claude-v1';
    const piece = (more: object) => ({
      reasoning: 'text' in more ? more.text : undefined,
      reasoning_details: [{ type: 'reasoning.text', ...more, format, index: 0 }],
    });
    const encrypted = { type: 'reasoning.encrypted', data: 'gAAA==', id: 'rs_1', format, index: 1 };
    const first = openAi(
      ...[piece({ text: 'let ' }), piece({ text: 'me', signature: null }), piece({ signature: 'sig' })],
      { reasoning_details: [encrypted] },
      call('call_1'),
    );
    const vendor = await start('openrouter', first, openAi({ content: 'x' }));
    const answer = await ask(vendor.models, [USER]);
    await ask(vendor.models, nextStep(answer));
    expect(answer.thought).toBe('let me');
    expect(assistantOf(vendor)?.['reasoning_details']).toEqual([
      { type: 'reasoning.text', text: 'let me', format, index: 0, signature: 'sig' },
      encrypted,
    ]);
    expect(assistantOf(vendor)).not.toHaveProperty('reasoning');
  });

  it('of LiteLLM is sent back with its signed blocks', async () => {
    const pieces = [
      { type: 'thinking', thinking: 'a', signature: '' },
      { type: 'thinking', thinking: 'b', signature: '' },
      { type: 'thinking', thinking: '', signature: 'sig' },
    ].map((part) => ({ reasoning_content: part.thinking, thinking_blocks: [part] }));
    const vendor = await start('openai-compatible', openAi(...pieces, call('c')), openAi({ content: 'x' }));
    await ask(vendor.models, nextStep(await ask(vendor.models, [USER])));
    expect(assistantOf(vendor)).toMatchObject({
      reasoning_content: 'ab',
      thinking_blocks: [{ type: 'thinking', thinking: 'ab', signature: 'sig' }],
    });
  });

  it('of Gemini is sent back as the signature of its tool call', async () => {
    const extra_content = { google: { thought_signature: 'CvcB+/==' } };
    const first = openAi(call('a', 0, { extra_content }), call('b', 1));
    const vendor = await start('openai-compatible', first, openAi({ content: 'x' }));
    await ask(vendor.models, nextStep(await ask(vendor.models, [USER])));
    const calls = assistantOf(vendor)?.['tool_calls'] as object[];
    expect(calls[0]).toMatchObject({ id: 'a', extra_content });
    expect(calls[1]).not.toHaveProperty('extra_content');
  });

  it.each(['functions.echo:0', `call_${'x'.repeat(3_000)}`, 'call_a|rs_b+/='])(
    'is sent back with the id of its call as it was: %.40s',
    async (id) => {
      const vendor = await start('openai-compatible', openAi(call(id)), openAi({ content: 'x' }));
      await ask(vendor.models, nextStep(await ask(vendor.models, [USER])));
      const { messages } = bodyOf(vendor, 1);
      expect(messages[1]).toMatchObject({ tool_calls: [{ id }] });
      expect(messages[2]).toMatchObject({ role: 'tool', tool_call_id: id });
    },
  );

  // @shows U05
  it('gives two calls with one id different ones', async () => {
    const first = openAi(call('a:0'), call('a:0', 1));
    const vendor = await start('openai-compatible', first, openAi({ content: 'x' }));
    await ask(vendor.models, nextStep(await ask(vendor.models, [USER])));
    const { messages } = bodyOf(vendor, 1);
    const sent = (messages[1]?.['tool_calls'] as { id: string }[]).map(({ id }) => id);
    expect(new Set(sent).size).toBe(2);
    expect(messages.slice(2).map((message) => message['tool_call_id'])).toEqual(sent);
  });

  it('is no state of a server that sent none', async () => {
    const vendor = await start('openai-compatible', openAi(call('call_1')));
    expect((await ask(vendor.models, [USER])).providerState).toBeUndefined();
  });
});

describe('reasoning that a server wants in later turns, too', () => {
  it('is kept for a family of models that documents it', async () => {
    const first = openAi({ reasoning_content: 'hm' }, call('call_1'));
    const vendor = await start('openai-compatible', first, first);
    expect(await ask(vendor.models, [USER])).not.toHaveProperty('keepsProviderState');
    expect(await ask(vendor.models, [USER], { model: 'deepseek-v4-pro' })).toMatchObject({
      keepsProviderState: true,
    });
  });

  it('is an empty text in the messages of another model', async () => {
    const vendor = await start('openai-compatible', openAi(call('call_1')), openAi({ content: 'x' }));
    const model = 'deepseek-v4-pro';
    await ask(vendor.models, nextStep(await ask(vendor.models, [USER], { model })), { model });
    expect(assistantOf(vendor)).toMatchObject({ reasoning_content: '' });
  });
});
