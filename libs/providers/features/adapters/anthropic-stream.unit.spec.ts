import { describe, expect, it } from '@jest/globals';
import { processorMs } from '@antiphon/testing';
import { anthropicStream } from '@antiphon/testing/providers';
import { readText } from '../testing/read-stream.js';
import { AnthropicReader } from './anthropic-response.js';
import { AnswerBuilder } from '../transport/answer-builder.js';

const event = (data: object & { type: string }): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
const [start, ping, ...rest] = anthropicStream('m', { text: ['hi'] });

describe('reading a stream of Anthropic', () => {
  it('uses the last of the cumulative usages, not their sum', async () => {
    const delta = (output_tokens: number) =>
      event({ type: 'message_delta', delta: {}, usage: { input_tokens: 7, output_tokens } } as never);
    const text = [
      start,
      ping,
      delta(3),
      delta(8),
      ...rest.slice(0, -2),
      delta(9),
      event({ type: 'message_delta', delta: { stop_reason: 'end_turn' } } as never),
      rest.at(-1),
    ];
    expect((await readText('anthropic', text.join(''))).answer).toMatchObject({
      usage: { inputTokens: 7, outputTokens: 9 },
    });
  });

  it('counts cached input as input', async () => {
    const text = [start, ...rest]
      .join('')
      .replace(
        '"usage":{"output_tokens"',
        '"usage":{"cache_read_input_tokens":100,"cache_creation_input_tokens":20,"output_tokens"',
      );
    expect((await readText('anthropic', text)).answer).toMatchObject({
      usage: { inputTokens: 130, cacheReadTokens: 100, cacheWriteTokens: 20, outputTokens: 5 },
    });
  });

  it('counts what is written to the cache for an hour apart', async () => {
    const writes = '{"ephemeral_5m_input_tokens":8,"ephemeral_1h_input_tokens":12}';
    const text = [start, ...rest]
      .join('')
      .replace(
        '"usage":{"output_tokens"',
        `"usage":{"cache_creation_input_tokens":20,"cache_creation":${writes},"output_tokens"`,
      );
    expect((await readText('anthropic', text)).answer).toMatchObject({
      usage: { inputTokens: 30, cacheWriteTokens: 20, cacheWrite1hTokens: 12, outputTokens: 5 },
    });
  });

  it('reports the input of a stream that breaks, or ends without a usage', async () => {
    const text = [start, ...rest].join('');
    expect((await readText('anthropic', text.slice(0, text.indexOf('message_delta')))).answer).toMatchObject({
      reason: 'provider_protocol',
      reportedInput: { inputTokens: 10 },
    });
    const answer = (await readText('anthropic', text.replace('"usage":{"output_tokens":5}', '"usage":{}')))
      .answer;
    expect(answer).toMatchObject({ text: 'hi', usage: null, reportedInput: { inputTokens: 10 } });
  });

  it('reports no input of a stream that ends in an error: it is not billed', async () => {
    const error = { type: 'error', error: { type: 'overloaded_error', message: 'Sorry' } };
    const { answer } = await readText('anthropic', [start, event(error as never)].join(''));
    expect(answer).toMatchObject({ refused: true });
    expect(answer).not.toHaveProperty('reportedInput');
  });

  it.each([
    ['overloaded_error', true],
    ['api_error', true],
    ['invalid_request_error', false],
  ])('fails with an error event of type %s', async (type, retryable) => {
    const text = [start, event({ type: 'error', error: { type, message: 'Sorry' } } as never)].join('');
    expect((await readText('anthropic', text)).answer).toMatchObject({
      reason: 'provider_error',
      message: expect.stringMatching(/^provider error in the stream: Sorry/),
      retryable,
    });
  });

  it('maps known stop reasons, and unknown ones to other', async () => {
    const stopped = async (reason: string) =>
      (await readText('anthropic', [start, ...rest].join('').replace('end_turn', reason))).answer;
    expect(await stopped('max_tokens')).toMatchObject({ finishReason: 'length' });
    expect(await stopped('refusal')).toMatchObject({ finishReason: 'content_filter' });
    expect(await stopped('constructor')).toMatchObject({ finishReason: 'other' });
  });
});

it('reads events after the reason to stop of an answer with many blocks in linear time', () => {
  const run = (count: number) => {
    const reader = new AnthropicReader(
      new AnswerBuilder({ onText: () => undefined, onThought: () => undefined }),
    );
    for (let index = 0; index < 900; index++)
      reader.event({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } });
    reader.event({ type: 'message_delta', delta: { stop_reason: 'end_turn' } });
    for (let n = 0; n < count; n++) {
      reader.event({ type: 'ping' });
      reader.isComplete();
    }
  };
  expect(processorMs(() => run(200_000))).toBeLessThan(1_000);
});
