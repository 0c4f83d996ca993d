import { describe, expect, it } from '@jest/globals';
import type { ModelAnswer } from '@antiphon/providers-domain';
import { anthropicStream, openAiStream } from '@antiphon/testing/providers';
import { readText, type Format } from '../testing/read-stream.js';

const TOOLS = [{ id: 'call_1', name: 'echo', input: { say: 'hi' } }];
const STREAMS = {
  anthropic: anthropicStream('m', { text: ['one ', 'two'], tools: TOOLS }).join(''),
  openai: openAiStream('m', { text: ['one ', 'two'], tools: TOOLS }).join(''),
};
const WHOLE = {
  text: 'one two',
  toolCalls: [{ providerCallId: 'call_1', name: 'echo', input: { say: 'hi' } }],
  finishReason: 'tool_calls',
};

const chunk = (delta: object | null, finish_reason: string | null = null, more: object = {}): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason, ...more }] })}\n\n`;
const END = chunk({}, 'tool_calls');
const callsOf = async (...pieces: readonly object[]) => {
  const text = pieces.map((piece) => chunk({ tool_calls: [piece] })).join('');
  const { answer } = await readText('openai', text + END);
  return (answer as ModelAnswer).toolCalls.map(({ name, input, problem }) => [name, problem ?? input]);
};
const fn = (name: string | undefined, args: unknown) => ({ function: { name, arguments: args } });

describe.each<Format>(['anthropic', 'openai'])('a stream in the format of %s', (format) => {
  // @shows U12
  it.each([
    ['no empty line after its last event', (text: string) => text.replace(/\n\n$/, '')],
    ['no line break at its end', (text: string) => text.replace(/\n+$/, '')],
    ['fields that a proxy has written twice', (text: string) => text.replaceAll('data: ', 'data: data: ')],
    ['comments between its lines', (text: string) => text.replaceAll('data: ', ': hello\ndata: ')],
    ['empty data between its events', (text: string) => text.replaceAll('\n\n', '\n\ndata:\n\n')],
    ['null between its events', (text: string) => text.replaceAll('\n\n', '\n\ndata: null\n\n')],
  ])('is read with %s', async (_name, change) => {
    expect((await readText(format, change(STREAMS[format]))).answer).toMatchObject(WHOLE);
  });

  // @shows U31
  it.each([
    ['an object with a type', '{"type":"error","error":{"type":"overloaded_error","message":"Sorry"}}'],
    ['a plain text', 'Sorry'],
    ['a message', '{"message":"Sorry"}'],
  ])('fails on an event of an error with %s', async (_name, data) => {
    const { answer } = await readText(format, `event: error\ndata: ${data}\n\n`);
    expect(answer).toMatchObject({
      reason: 'provider_error',
      refused: true,
      message: expect.stringMatching(/^provider error in the stream: Sorry/),
    });
  });
});

describe.each<Format>(['anthropic', 'openai'])('text in the format of %s', (format) => {
  const render = format === 'anthropic' ? anthropicStream : openAiStream;

  // @shows U19
  it.each([
    [['a\ud83c'], 'a\ufffd'],
    [['a', '\ud83c'], 'a\ufffd'],
    [['a🎉', '\ud83c\udf89\ud83c'], 'a🎉🎉\ufffd'],
  ])(
    'that its length limit cuts within an emoji (%j) is kept, with a sign for the half',
    async (text, whole) => {
      const { answer, text: streamed } = await readText(
        format,
        render('m', { text, cutBy: 'length' }).join(''),
      );
      expect(answer).toMatchObject({ text: whole, finishReason: 'length' });
      expect(streamed).toBe(whole);
    },
  );

  // @shows U18
  it.each([
    [{ say: 'x\ud83c' }, { say: 'x\ufffd' }],
    [
      { say: '\udf89x', deep: ['\ud83c'] },
      { say: '\ufffdx', deep: ['\ufffd'] },
    ],
    [{ 'k\ud83c': '🎉' }, { 'k\ufffd': '🎉' }],
  ])('in arguments with half of an emoji (%j) is replaced, and the call is whole', async (input, kept) => {
    const tools = [{ id: 'call_1', name: 'echo', input }];
    const { answer } = await readText(format, render('m', { tools }).join(''));
    expect((answer as ModelAnswer).toolCalls).toEqual([
      { providerCallId: 'call_1', name: 'echo', input: kept },
    ]);
  });
});

describe('a stream of an OpenAI-compatible server', () => {
  // @shows U13
  it.each(['', null, undefined])(
    'is read to its end where each event has the reason to stop %j',
    async (none) => {
      const early = none as string | null;
      const text = chunk({ content: 'one ' }, early) + chunk({ content: 'two' }, early) + chunk({}, 'stop');
      expect((await readText('openai', text)).answer).toMatchObject({
        text: 'one two',
        finishReason: 'stop',
      });
      const call = chunk({ tool_calls: [{ index: 0, id: 'i', ...fn('x', '{"a":1}') }] }, early);
      expect((await readText('openai', call + END)).answer).toMatchObject({
        finishReason: 'tool_calls',
        toolCalls: [{ name: 'x', input: { a: 1 } }],
      });
    },
  );

  const counted = (delta: object, usage: object | null, finish: string | null = null): string =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }], usage })}\n\n`;
  const REAL = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  const NOTHING = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  const PROMPT = { prompt_tokens: 10, completion_tokens: 0, total_tokens: 10 };

  // @shows U14
  it.each([
    ['null before the real one', [null, null, REAL]],
    ['zeros before the real one', [NOTHING, NOTHING, REAL]],
    ['only the input before the real one', [PROMPT, null, REAL]],
    ['null after the real one', [null, REAL, null]],
  ])('is charged by the real usage where it reports %s', async (_name, [first, second, last]) => {
    const text =
      counted({ content: 'one ' }, first ?? null) +
      counted({ content: 'two' }, second ?? null) +
      counted({}, last ?? null, 'stop');
    const { answer } = await readText('openai', text);
    expect(answer).toMatchObject({ text: 'one two', usage: { inputTokens: 10, outputTokens: 5 } });
  });

  // @shows U15
  it.each([
    ['on the last piece of its text', [counted({ content: 'one' }, REAL), chunk({}, 'stop')]],
    ['on its only event', [counted({ content: 'one' }, REAL, 'stop')]],
  ])('keeps both the text and the usage where the usage is %s', async (_name, pieces) => {
    const { answer } = await readText('openai', pieces.join(''));
    expect(answer).toMatchObject({ text: 'one', usage: { inputTokens: 10, outputTokens: 5 } });
  });

  // @shows U31
  it.each([
    ['vLLM', { object: 'error', message: 'Sorry', code: 400 }],
    ['FastAPI', { detail: 'Sorry' }],
    ['DashScope', { code: 'InvalidParameter', message: 'Sorry', request_id: '1' }],
    ['Anthropic', { type: 'error', error: { message: 'Sorry' } }],
  ])('fails on an error without an event’s name, as %s sends it', async (_name, error) => {
    const { answer } = await readText('openai', `data: ${JSON.stringify(error)}\n\n`);
    expect(answer).toMatchObject({ message: expect.stringMatching(/^provider error in the stream: Sorry/) });
  });

  // @shows U12
  it('is read without empty lines between its events', async () => {
    const text = STREAMS.openai.replaceAll('\n\n', '\n');
    expect((await readText('openai', `${text}\n`)).answer).toMatchObject(WHOLE);
  });

  it('is read with a content of parts', async () => {
    const thinking = [{ type: 'text', text: 'hm' }];
    const text =
      chunk({ content: [{ type: 'thinking', thinking }] }) +
      chunk({
        content: [
          { type: 'text', text: 'one ' },
          { type: 'text', text: 'two' },
        ],
      });
    expect((await readText('openai', text + chunk({}, 'stop'))).answer).toMatchObject({
      ...{ thought: 'hm', text: 'one two' },
    });
  });

  it('is read as one whole message', async () => {
    const message = { role: 'assistant', content: 'one two' };
    const { answer } = await readText('openai', chunk(null, 'stop', { message }));
    expect(answer).toMatchObject({ text: 'one two' });
  });

  it('does not repeat a text that its end repeats', async () => {
    const text = chunk({ content: 'one' }) + chunk(null, 'stop', { message: { content: 'one' } });
    expect((await readText('openai', text)).answer).toMatchObject({ text: 'one' });
  });

  it('counts reasoning that the vendor counts apart', async () => {
    const usage = (counts: object) =>
      `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, ...counts } })}\n\n`;
    const details = { completion_tokens_details: { reasoning_tokens: 100 } };
    const outputOf = async (counts: object) =>
      ((await readText('openai', chunk({}, 'stop') + usage(counts))).answer as ModelAnswer).usage
        ?.outputTokens;
    expect(await outputOf({ total_tokens: 115, ...details })).toBe(105);
    expect(await outputOf({ total_tokens: 15, ...details })).toBe(5);
    expect(await outputOf(details)).toBe(5);
  });
});

describe('tool calls of an OpenAI-compatible server', () => {
  const one = { a: 1 };
  const two = { b: 2 };
  it('are separate although they share an index and have no id', async () => {
    const calls = await callsOf({ index: 0, ...fn('x', '{"a":1}') }, { index: 0, ...fn('y', '{"b":2}') });
    expect(calls).toEqual([
      ['x', one],
      ['y', two],
    ]);
  });

  it('are one where each piece repeats the name', async () => {
    const calls = await callsOf(
      { index: 0, id: 'i', ...fn('x', '') },
      { index: 0, id: 'i', ...fn('x', '{"a"') },
      { index: 0, id: 'i', ...fn('x', ':1}') },
      { index: 0, id: 'i', ...fn('x', '') },
    );
    expect(calls).toEqual([['x', one]]);
  });

  // @shows U04
  it('are one where the last piece repeats the whole call', async () => {
    const calls = await callsOf(
      ...[
        { index: 0, id: 'i', ...fn('x', '{"a":') },
        { index: 0, ...fn(undefined, '1}') },
      ],
      { index: 0, id: 'i', ...fn('x', '{"a":1}') },
    );
    expect(calls).toEqual([['x', one]]);
  });

  // @shows U04
  it('belong together by their ids where they have no index', async () => {
    const calls = await callsOf(
      ...[
        { id: 'i', ...fn('x', '{"a":') },
        { id: 'j', ...fn('y', '{"b":') },
      ],
      ...[
        { id: 'i', ...fn(undefined, '1}') },
        { id: 'j', ...fn(undefined, '2}') },
      ],
    );
    expect(calls).toEqual([
      ['x', one],
      ['y', two],
    ]);
  });

  it('have a name that arrives in parts', async () => {
    const calls = await callsOf(
      ...[
        { index: 0, id: 'i', ...fn('get_', '') },
        { index: 0, ...fn('weather', '') },
      ],
      { index: 0, ...fn(undefined, '{"a":1}') },
    );
    expect(calls).toEqual([['get_weather', one]]);
  });

  it('are read from the older form with one call', async () => {
    const text =
      chunk({ function_call: fn('x', '{"a"').function }) + chunk({ function_call: { arguments: ':1}' } });
    const { answer } = await readText('openai', text + chunk({}, 'function_call'));
    expect(answer).toMatchObject({ finishReason: 'tool_calls', toolCalls: [{ name: 'x', input: one }] });
  });

  // @shows U03
  it.each([
    ['an empty object before them', '{}{"a":1}', one],
    ['JSON within JSON', JSON.stringify('{"a":1}'), one],
    ['JSON of a text within JSON', JSON.stringify('hello'), 'not_object'],
    ['two objects', '{"a":1}{"b":2}', 'not_json'],
  ])('have arguments with %s', async (_name, json, expected) => {
    expect(await callsOf({ index: 0, id: 'i', ...fn('x', json) })).toEqual([['x', expected]]);
  });

  // @shows U03
  it('without a name are errors of their own, and empty ones at the end are none', async () => {
    const calls = await callsOf(
      ...[
        { index: 0, id: 'i', ...fn('', '{"a":1}') },
        { index: 1, id: 'j', ...fn(' y ', '{"b":2}') },
      ],
      { index: 2, ...fn('', '') },
    );
    expect(calls).toEqual([
      ['unnamed_tool', one],
      ['y', two],
    ]);
  });
});

describe('a stream in Anthropic’s format', () => {
  const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;
  const stop = event({ type: 'message_delta', delta: { stop_reason: 'end_turn' } });
  const text = (index: number, value: string) => ({
    ...{ type: 'content_block_delta', index, delta: { type: 'text_delta', text: value } },
  });

  it('is read without the names of its events', async () => {
    const unnamed = STREAMS.anthropic.replaceAll(/^event: .*\n/gm, '');
    expect((await readText('anthropic', unnamed)).answer).toMatchObject(WHOLE);
  });

  it('fails on an error without an event’s name', async () => {
    const { answer } = await readText('anthropic', event({ type: 'error', error: { message: 'Sorry' } }));
    expect(answer).toMatchObject({ message: expect.stringMatching(/^provider error in the stream: Sorry/) });
  });

  it('is read where every block has the same index', async () => {
    const blocks = ['one ', 'two'].map((value) =>
      [{ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }, text(0, value)]
        .concat([{ type: 'content_block_stop', index: 0 } as never])
        .map(event)
        .join(''),
    );
    expect((await readText('anthropic', blocks.join('') + stop)).answer).toMatchObject({ text: 'one two' });
  });

  it('is read without the start or the end of a block', async () => {
    const parts = [text(0, 'one '), text(0, 'two')].map(event).join('');
    const end = event({ type: 'message_stop' });
    expect((await readText('anthropic', parts + stop + end)).answer).toMatchObject({ text: 'one two' });
  });
});
