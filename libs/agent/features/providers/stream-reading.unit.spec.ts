import { describe, expect, it } from '@jest/globals';
import { ModelFailure, type ModelAnswer, type ModelRequest } from '@antiphon/agent-domain';
import { anthropicStream, openAiStream, type MockReply } from '@antiphon/testing/providers';
import fc from 'fast-check';
import type { Dispatcher } from 'undici';
import { processorMs } from '@antiphon/testing';
import { AnthropicReader } from './anthropic-response.js';
import { createAnthropicAdapter } from './anthropic.adapter.js';
import { createOpenAiAdapter } from './openai.adapter.js';
import { AnswerBuilder } from './transport/answer-builder.js';
import { createHttpTransport, type HttpTransport } from './transport/http-transport.js';
import { DEFAULT_PROVIDER_LIMITS, type ProviderAdapter } from './transport/provider-call.js';

const environment = {
  limits: DEFAULT_PROVIDER_LIMITS,
  redact: (text: string) => text,
  now: () => 0,
};

/** A transport within this process: it delivers exactly these chunks, without a socket. */
const transportOf = (chunks: readonly Uint8Array[]): HttpTransport => {
  const respond = (handler: Dispatcher.DispatchHandler): void => {
    let isAborted = false;
    const controller = { abort: () => (isAborted = true) } as unknown as Dispatcher.DispatchController;
    handler.onRequestStart?.(controller, null);
    handler.onResponseStart?.(controller, 200, { 'content-type': 'text/event-stream' });
    for (const chunk of chunks) {
      if (isAborted) return;
      handler.onResponseData?.(controller, chunk as Buffer);
    }
    if (!isAborted) handler.onResponseEnd?.(controller, {});
  };
  const dispatch: Dispatcher['dispatch'] = (_options, handler) => {
    setImmediate(respond, handler);
    return true;
  };
  return createHttpTransport({ dispatch }, environment);
};

type Format = 'anthropic' | 'openai';
const adapterFor = (format: Format, transport: HttpTransport): ProviderAdapter => {
  const deps = { ...environment, baseUrl: 'http://provider.test', apiKey: 'k', transport };
  return format === 'anthropic'
    ? createAnthropicAdapter(deps)
    : createOpenAiAdapter({ ...deps, kind: 'openai', outputLimit: 'max_tokens' });
};

interface Read {
  readonly answer: ModelAnswer | ModelFailure;
  readonly text: string;
  readonly thought: string;
}

const read = async (format: Format, chunks: readonly Uint8Array[]): Promise<Read> => {
  const said = { text: '', thought: '' };
  const request: ModelRequest = {
    provider: 'it',
    model: 'm',
    system: '',
    messages: [{ role: 'user', text: 'hello' }],
    tools: [],
    maxOutputTokens: 10,
    signal: new AbortController().signal,
    streaming: true,
  };
  const answer = await adapterFor(format, transportOf(chunks))
    .complete(request, {
      onText: (delta) => void (said.text += delta),
      onThought: (delta) => void (said.thought += delta),
    })
    .catch((error: unknown) => error as ModelFailure);
  return { answer, ...said };
};
const readText = (format: Format, text: string): Promise<Read> => read(format, [Buffer.from(text)]);

const REPLY: MockReply = {
  thought: ['hmm, ', 'naïve'],
  text: ['Grüße ', '🎉🎊', ' and "quotes"\n\nnew\r\nlines', ' 你好'],
  tools: [
    { id: 'call_1', name: 'calculator', input: { expression: '2 + 3' } },
    { id: 'call_2', name: 'echo', input: { say: 'ünï 🎉', deep: { list: [1, null, true] } } },
  ],
  usage: { inputTokens: 12, outputTokens: 34 },
};
const EXPECTED: ModelAnswer = {
  model: 'm',
  thought: 'hmm, naïve',
  text: 'Grüße 🎉🎊 and "quotes"\n\nnew\r\nlines 你好',
  toolCalls: (REPLY.tools ?? []).map(({ id, name, input }) => ({
    providerCallId: id,
    name,
    input: input as ModelAnswer['toolCalls'][number]['input'],
  })),
  finishReason: 'tool_calls',
  usage: { inputTokens: 12, outputTokens: 34 },
};

const STREAMS = { anthropic: anthropicStream('m', REPLY), openai: openAiStream('m', REPLY) };
const FORMATS: readonly Format[] = ['anthropic', 'openai'];

const cutAt = (bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] => {
  const edges = [0, ...[...new Set(cuts)].sort((a, b) => a - b), bytes.length];
  return edges.slice(1).map((edge, index) => bytes.subarray(edges[index], edge));
};

describe.each(FORMATS)('reading a stream in the format of %s', (format) => {
  const bytes = Buffer.from(STREAMS[format].join(''));

  it('returns the same answer for every way to cut the stream into chunks', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 60 }), async (cuts) => {
        expect(await read(format, cutAt(bytes, cuts))).toEqual({
          answer: EXPECTED,
          text: EXPECTED.text,
          thought: EXPECTED.thought,
        });
      }),
      { numRuns: 150 },
    );
  });

  it('returns the same answer byte by byte', async () => {
    expect(
      (
        await read(
          format,
          Array.from(bytes, (byte) => Uint8Array.of(byte)),
        )
      ).answer,
    ).toEqual(EXPECTED);
  });

  it.each([
    ['CRLF', (text: string) => text.replaceAll('\n', '\r\n')],
    ['CR', (text: string) => text.replaceAll('\n', '\r')],
    [
      'comments and unknown fields',
      (text: string) => `: OPENROUTER PROCESSING\n\n${text.replaceAll('data:', 'retry: 9\ndata:')}`,
    ],
    ['a byte order mark', (text: string) => `\ufeff${text}`],
    ['no space after the colon', (text: string) => text.replaceAll('data: ', 'data:')],
  ])('reads %s', async (_name, change) => {
    expect((await readText(format, change(bytes.toString('utf8')))).answer).toEqual(EXPECTED);
  });

  it('completes the whole step or none, wherever the stream ends', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), async (end) => {
        const { answer, text } = await read(format, [bytes.subarray(0, end)]);
        expect(EXPECTED.text.startsWith(text)).toBe(true);
        if (answer instanceof ModelFailure)
          expect(answer).toMatchObject({ reason: 'provider_protocol', dispatched: true });
        else expect({ ...answer, usage: EXPECTED.usage }).toEqual(EXPECTED);
      }),
      { numRuns: 300 },
    );
  });

  it('fails only with a ModelFailure, for any bytes', async () => {
    const pieces = fc.array(
      fc.oneof(
        fc.constantFrom(...STREAMS[format]),
        fc.constantFrom(
          'data: [1]\n\n',
          'data: null\n\n',
          'data: {"choices":[{"delta":7}]}\n\n',
          'event: error\ndata: x\n\n',
          'event: message_delta\ndata: {"type":"content_block_delta","index":9}\n\n',
        ),
        fc.string(),
      ),
      { maxLength: 12 },
    );
    await fc.assert(
      fc.asyncProperty(pieces, async (parts) => {
        const { answer } = await readText(format, parts.join(''));
        expect(answer instanceof ModelFailure || typeof answer.text === 'string').toBe(true);
        if (answer instanceof Error) expect(answer.name).toBe('ModelFailure');
      }),
      { numRuns: 300 },
    );
  });

  /** Starts of tool calls, each with an index of its own. */
  const toolCalls = (count: number): string[] =>
    Array.from({ length: count }, (_, index) => {
      const call = { id: `call_${index}`, name: 'echo' };
      const data =
        format === 'openai'
          ? { choices: [{ delta: { tool_calls: [{ index, id: call.id, function: { name: 'echo' } }] } }] }
          : { type: 'content_block_start', index, content_block: { type: 'tool_use', ...call } };
      return `event: content_block_start\ndata: ${JSON.stringify(data)}\n\n`;
    });

  it('refuses the 65th tool call while the stream goes on', async () => {
    const isRefused = async (count: number) => {
      const { answer } = await readText(format, toolCalls(count).join(''));
      return answer instanceof ModelFailure && answer.message.includes('over 64 tool calls');
    };
    expect(await isRefused(64)).toBe(false);
    expect(await isRefused(65)).toBe(true);
  });

  it('refuses 14 MiB with 180,000 indexes of tool calls in the time of their bytes', async () => {
    const chunks = cutAt(Buffer.from(toolCalls(180_000).join('')), [100_000, 5_000_000]);
    const from = process.cpuUsage();
    const { answer } = await read(format, chunks);
    expect(answer).toMatchObject({ reason: 'provider_protocol' });
    expect(process.cpuUsage(from).user / 1_000).toBeLessThan(2_000);
  });

  it('refuses one event, and the arguments of a call, over their bounds', async () => {
    const long = `data: {"choices":[],"type":"ping","x":"${'x'.repeat(1024 * 1024)}"}\n\n`;
    expect((await readText(format, `event: message_delta\n${long}`)).answer).toMatchObject({
      message: expect.stringContaining('an event of the provider'),
    });
    const piece = 'x'.repeat(500_000);
    const more =
      format === 'openai'
        ? { choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: piece } }] } }] }
        : { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: piece } };
    const pieces = `event: content_block_delta\ndata: ${JSON.stringify(more)}\n\n`.repeat(5);
    expect((await readText(format, `${toolCalls(1).join('')}${pieces}`)).answer).toMatchObject({
      message: 'the arguments of the tool calls are too long',
    });
  });

  it('reports no usage when the stream has none', async () => {
    const stream = (format === 'anthropic' ? anthropicStream : openAiStream)('m', {
      text: ['hi'],
      usage: null,
    });
    expect((await readText(format, stream.join(''))).answer).toMatchObject({ text: 'hi', usage: null });
  });

  it.each([['-5'], ['"12"'], ['1e20'], ['1.5'], ['null'], ['{}']])(
    'reports no usage when the output count is %s',
    async (value) => {
      const text = STREAMS[format]
        .join('')
        .replaceAll(/"(output_tokens|completion_tokens)":34/g, `"$1":${value}`);
      expect((await readText(format, text)).answer).toMatchObject({ text: EXPECTED.text, usage: null });
    },
  );
});

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
      usage: { inputTokens: 130, outputTokens: 5 },
    });
  });

  it.each([
    ['overloaded_error', true],
    ['api_error', true],
    ['invalid_request_error', false],
  ])('fails with an error event of type %s', async (type, retryable) => {
    const text = [start, event({ type: 'error', error: { type, message: 'Sorry' } } as never)].join('');
    expect((await readText('anthropic', text)).answer).toMatchObject({
      reason: 'provider_error',
      message: 'provider error in the stream: Sorry',
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
