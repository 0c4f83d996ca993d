import { describe, expect, it } from '@jest/globals';
import type { ModelAnswer } from '@antiphon/providers-domain';
import { readText } from '../testing/read-stream.js';

const chunk = (choice: object, more: object = {}): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, ...choice }], ...more })}\n\n`;
const finish = (finish_reason: string | null): string => chunk({ delta: {}, finish_reason });
const tool = (piece: object): string => chunk({ delta: { tool_calls: [piece] } });

describe('reading a stream of an OpenAI-compatible server', () => {
  it('completes a stream with a finish reason and without [DONE]', async () => {
    const text = chunk({ delta: { content: 'hi' } }) + finish('stop');
    expect((await readText('openai', text)).answer).toMatchObject({
      text: 'hi',
      finishReason: 'stop',
      usage: null,
    });
  });

  it('fails on [DONE] without a finish reason', async () => {
    const text = `${chunk({ delta: { content: 'hi' } })}data: [DONE]\n\n`;
    expect((await readText('openai', text)).answer).toMatchObject({
      reason: 'provider_protocol',
      retryable: true,
    });
  });

  it('fails on an error within a stream', async () => {
    const text = `${chunk({ delta: { content: 'hi' } })}data: {"error":{"message":"upstream died","code":502}}\n\n`;
    expect((await readText('openai', text)).answer).toMatchObject({
      reason: 'provider_error',
      message: expect.stringMatching(/^provider error in the stream: upstream died/),
      status: 502,
      retryable: true,
    });
  });

  // @shows U09 U23
  it('reads reasoning under both of its names, and a refusal as text', async () => {
    const text = [{ reasoning_content: 'a' }, { reasoning: 'b' }, { refusal: 'no' }]
      .map((delta) => chunk({ delta }))
      .join('');
    expect((await readText('openai', text + finish('stop'))).answer).toMatchObject({
      thought: 'ab',
      text: 'no',
    });
  });

  it('uses the last usage of a server that sends a running total', async () => {
    const usage = (completion_tokens: number) =>
      chunk({ delta: { content: '.' } }, { usage: { prompt_tokens: 4, completion_tokens } });
    expect((await readText('openai', usage(1) + usage(2) + finish('stop'))).answer).toMatchObject({
      usage: { inputTokens: 4, outputTokens: 2 },
    });
  });

  it.each([
    ['OpenAI', { prompt_tokens_details: { cached_tokens: 9_984 } }, { cacheReadTokens: 9_984 }],
    ['DeepSeek', { prompt_cache_hit_tokens: 64, prompt_cache_miss_tokens: 9_936 }, { cacheReadTokens: 64 }],
    ['Kimi', { cached_tokens: 256 }, { cacheReadTokens: 256 }],
    [
      'OpenRouter',
      { prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 50 } },
      { cacheReadTokens: 100, cacheWriteTokens: 50 },
    ],
    [
      'LiteLLM',
      { prompt_tokens_details: { cached_tokens: 7 }, cache_creation_input_tokens: 8 },
      { cacheReadTokens: 7, cacheWriteTokens: 8 },
    ],
    ['a server with null details', { prompt_tokens_details: null }, {}],
    ['a server that counts nothing cached', { prompt_tokens_details: { cached_tokens: 0 } }, {}],
    [
      'a server that counts more than all as cached',
      { prompt_tokens_details: { cached_tokens: 20_000 }, cache_creation_input_tokens: 5 },
      { cacheReadTokens: 10_000 },
    ],
    ['a server that counts in text', { prompt_tokens_details: { cached_tokens: '7' } }, {}],
  ])('counts cached input of %s', async (_server, details, cached) => {
    const usage = { prompt_tokens: 10_000, completion_tokens: 5, ...details };
    const { answer } = await readText(
      'openai',
      chunk({ delta: { content: '.' } }, { usage }) + finish('stop'),
    );
    expect((answer as ModelAnswer).usage).toEqual({ inputTokens: 10_000, outputTokens: 5, ...cached });
  });

  it('separates tool calls that share an index, and joins pieces that repeat their id', async () => {
    const text = [
      tool({ index: 0, id: 'a', function: { name: 'one', arguments: '{"x":' } }),
      tool({ index: 0, id: 'a', function: { name: 'one', arguments: '1}' } }),
      tool({ index: 0, id: 'b', function: { name: 'two', arguments: '' } }),
      tool({ id: 'c', function: { name: 'three', arguments: { y: 2 } } }),
    ].join('');
    expect((await readText('openai', text + finish('stop'))).answer).toMatchObject({
      finishReason: 'tool_calls',
      toolCalls: [
        { providerCallId: 'a', name: 'one', input: { x: 1 } },
        { providerCallId: 'b', name: 'two', input: {} },
        { providerCallId: 'c', name: 'three', input: { y: 2 } },
      ],
    });
  });

  /** Checks that a call with unusable arguments leaves the other call of its answer whole. */
  const marksCall = async (json: string, problem: string): Promise<void> => {
    const text =
      tool({ index: 0, id: 'a', function: { name: 'rm', arguments: json } }) +
      tool({ index: 1, id: 'b', function: { name: 'echo', arguments: '{"x":1}' } });
    const { answer } = await readText('openai', text + finish('tool_calls'));
    expect((answer as ModelAnswer).toolCalls).toEqual([
      { providerCallId: 'a', name: 'rm', input: {}, problem },
      { providerCallId: 'b', name: 'echo', input: { x: 1 } },
    ]);
  };

  // @shows U02
  it.each([
    ['{a:1', 'not_json'],
    ['{"a":1', 'not_json'],
    ['undefined', 'not_json'],
    ['[1]', 'not_object'],
    ['"text"', 'not_object'],
    ['7', 'not_object'],
    ['['.repeat(65) + ']'.repeat(65), 'too_complex'],
  ])('marks the one tool call with the arguments %s as %s', (json, problem) => marksCall(json, problem));

  // @shows U01 U02
  it.each(['', ' \n', 'null', ' null ', null, undefined])(
    'reads the arguments %j as an empty object',
    async (json) => {
      const text = tool({ index: 0, id: 'a', function: { name: 'now', arguments: json } });
      const { answer } = await readText('openai', text + finish('tool_calls'));
      expect((answer as ModelAnswer).toolCalls).toEqual([{ providerCallId: 'a', name: 'now', input: {} }]);
    },
  );

  it('bounds the values of a tool call and of an event before they are parsed', async () => {
    const many = '[],'.repeat(60_000);
    await marksCall(`{"a":[${many}[]]}`, 'too_complex');
    const { answer } = await readText('openai', `data: {"choices":[],"a":[${many}[]]}\n\n`);
    const message = "the provider's answer nests too deep, or has too many values";
    expect(answer).toMatchObject({ reason: 'provider_protocol', message });
  });

  // @shows U21
  it.each(['{"a":"', '', '{"a":1}'])(
    'marks the last call of an answer that reached its length limit as cut, with the arguments %j',
    async (json) => {
      const text =
        tool({ index: 0, id: 'a', function: { name: 'echo', arguments: '{"x":1}' } }) +
        tool({ index: 1, id: 'b', function: { name: 'rm', arguments: json } });
      const { answer } = await readText('openai', text + finish('length'));
      expect(answer).toMatchObject({ finishReason: 'length' });
      expect((answer as ModelAnswer).toolCalls).toEqual([
        { providerCallId: 'a', name: 'echo', input: { x: 1 } },
        { providerCallId: 'b', name: 'rm', input: {}, problem: 'cut' },
      ]);
    },
  );

  // @shows U11
  it.each([': keep-alive', 'ping', '[', 'OPENROUTER PROCESSING'])(
    'skips the event %s among good ones',
    async (data) => {
      const text =
        chunk({ delta: { content: 'one ' } }) +
        `data: ${data}\n\n` +
        tool({ index: 0, id: 'a', function: { name: 'echo', arguments: '{"x":1}' } });
      const { answer } = await readText('openai', text + finish('tool_calls'));
      expect(answer).toMatchObject({ text: 'one ', toolCalls: [{ name: 'echo', input: { x: 1 } }] });
      expect((answer as ModelAnswer).toolCalls[0]).not.toHaveProperty('problem');
    },
  );

  it('runs no call of an answer of which a part could not be read', async () => {
    const text =
      tool({ index: 0, id: 'a', function: { name: 'rm', arguments: '{"a":1' } }) +
      'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"func\n\n' +
      tool({ index: 0, function: { arguments: '}' } });
    const { answer } = await readText('openai', text + finish('tool_calls'));
    expect((answer as ModelAnswer).toolCalls).toEqual([
      { providerCallId: 'a', name: 'rm', input: {}, problem: 'incomplete' },
    ]);
  });

  it('names the events that it skipped in the failure of an answer without an end', async () => {
    const { answer } = await readText('openai', chunk({ delta: { content: 'a' } }) + 'data: ping\n\n');
    expect(answer).toMatchObject({
      reason: 'provider_protocol',
      message: 'the provider ended its answer before it was complete; 1 of its events were not valid JSON',
    });
  });

  it('removes prototype keys from an input', async () => {
    const text = tool({
      index: 0,
      id: 'a',
      function: { name: 'x', arguments: '{"__proto__":{"admin":true},"\\u005f_proto__":1,"b":2}' },
    });
    const { answer } = await readText('openai', text + finish('tool_calls'));
    expect((answer as ModelAnswer).toolCalls[0]?.input).toEqual({ b: 2 });
    expect(({} as Record<string, unknown>)['admin']).toBeUndefined();
  });

  // @shows U17
  it('joins an emoji that two deltas share, and replaces text that cannot be stored', async () => {
    const text =
      chunk({ delta: { content: 'a\ud83c' } }) +
      chunk({ delta: { content: '\udf89\0' } }) +
      chunk({ delta: { content: '\udc00 z\ud83c' } });
    const { answer, text: streamed } = await readText('openai', text + finish('stop'));
    expect(answer).toMatchObject({ text: 'a🎉\ufffd\ufffd z\ufffd' });
    expect(streamed).toBe('a🎉\ufffd\ufffd z\ufffd');
  });
});
