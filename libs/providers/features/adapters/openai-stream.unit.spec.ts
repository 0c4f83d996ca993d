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
      message: 'provider error in the stream: upstream died',
      status: 502,
      retryable: true,
    });
  });

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

  const failsWithInput = async (json: string, problem: string): Promise<void> => {
    const text = tool({ index: 0, id: 'a', function: { name: 'rm', arguments: json } });
    const { answer } = await readText('openai', text + finish('tool_calls'));
    const message = `the model's input for tool "rm" ${problem}`;
    expect(answer).toMatchObject({ reason: 'provider_protocol', message });
  };

  it.each([
    ['{a:1', 'is not valid JSON'],
    ['[1]', 'is not a JSON object'],
    ['['.repeat(65) + ']'.repeat(65), 'nests deeper than 64 levels'],
  ])('fails on a tool call with the input %s', (json, problem) => failsWithInput(json, problem));

  it('fails on a tool call and on an event with very many values, before they are parsed', async () => {
    const many = '[],'.repeat(60_000);
    await failsWithInput(`{"a":[${many}[]]}`, 'has over 100000 values');
    const { answer } = await readText('openai', `data: {"choices":[],"a":[${many}[]]}\n\n`);
    const message = "an event of the provider's answer has over 100000 values";
    expect(answer).toMatchObject({ reason: 'provider_protocol', message });
  });

  it('is not retryable when an input was cut at max_tokens', async () => {
    const text =
      tool({ index: 0, id: 'a', function: { name: 'rm', arguments: '{"a":"' } }) + finish('length');
    expect((await readText('openai', text)).answer).toMatchObject({
      retryable: false,
      message: expect.stringContaining('max_tokens'),
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
