import { describe, expect, it } from '@jest/globals';
import { ModelFailure, type ModelAnswer } from '@antiphon/providers-domain';
import { anthropicStream, openAiStream, type MockReply } from '@antiphon/testing/providers';
import fc from 'fast-check';
import { read, readText, type Format } from '../testing/read-stream.js';

const REPLY: MockReply = {
  thought: ['hmm, ', 'naïve'],
  text: ['Grüße ', '🎉🎊', ' and "quotes"\n\nnew\r\nlines', ' 你好'],
  tools: [
    { id: 'call_1', name: 'calculator', input: { expression: '2 + 3' } },
    { id: 'call_2', name: 'echo', input: { say: 'ünï 🎉', deep: { list: [1, null, true] } } },
  ],
  usage: { inputTokens: 12, outputTokens: 34 },
};
const ANSWER: ModelAnswer = {
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
/** State that each vendor wants back with the results of the tool calls. */
const STATES = {
  anthropic: {
    anthropic: [
      { thinking: ANSWER.thought.length, block: { type: 'thinking', thinking: '', signature: '' } },
      ...[{ text: ANSWER.text.length }, { tool: true }, { tool: true }],
    ],
  },
  openai: { openai: { thoughtIn: ['reasoning_content'], fields: {}, calls: [null, null] } },
};
const FORMATS: readonly Format[] = ['anthropic', 'openai'];

const cutAt = (bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] => {
  const edges = [0, ...[...new Set(cuts)].sort((a, b) => a - b), bytes.length];
  return edges.slice(1).map((edge, index) => bytes.subarray(edges[index], edge));
};

describe.each(FORMATS)('reading a stream in the format of %s', (format) => {
  const bytes = Buffer.from(STREAMS[format].join(''));
  const EXPECTED: ModelAnswer = { ...ANSWER, providerState: JSON.stringify(STATES[format]) };

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

  // @shows U16
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

  // @shows U12
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

  it('refuses the 65th tool call while the stream continues', async () => {
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
