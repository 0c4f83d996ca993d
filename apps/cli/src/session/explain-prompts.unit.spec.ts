import { describe, expect, it } from '@jest/globals';
import { explainCalls } from './explain-prompts.js';

const prompt = {
  ...{ toolsDigest: 't', systemDigest: 's', messages: 5, earlierMessages: 4, hasContext: false },
};
const call = (data: object, second = 0) => ({
  type: 'ModelCallCompleted',
  schemaVersion: 1,
  data: {
    ...{ turnId: 't1', attempt: 1, provider: 'p', model: 'm', prompt },
    usage: { inputTokens: 100, cacheReadTokens: 90, outputTokens: 1, estimated: false },
    completedAt: new Date(second * 1_000).toISOString(),
    ...data,
  },
});
const causesOf = (...calls: object[]) => explainCalls({ events: calls } as never).map(({ causes }) => causes);

describe('the explanation of a prompt cache', () => {
  it('names nothing for calls that begin alike', () =>
    expect(causesOf(call({}), call({}))).toEqual([[], []]));

  it.each([
    ['model', { model: 'n' }],
    ['model', { provider: 'q' }],
    ['tools', { prompt: { ...prompt, toolsDigest: 'u' } }],
    ['system', { prompt: { ...prompt, systemDigest: 'u' } }],
    ['window', { prompt: { ...prompt, earlierMessages: 2 } }],
  ])('names the change of the %s', (cause, change) =>
    expect(causesOf(call({}), call(change), call(change))).toEqual([[], [cause], []]),
  );

  it('names a window that moved from one turn to the next', () => {
    const next = (earlierMessages: number) => ({ turnId: 't2', prompt: { ...prompt, earlierMessages } });
    expect(causesOf(call({}), call(next(6)))).toEqual([[], []]);
    expect(causesOf(call({}), call(next(4)))).toEqual([[], ['window']]);
  });

  it('names the facts of the last turn, which only that turn had', () => {
    const withFacts = { prompt: { ...prompt, hasContext: true } };
    expect(
      causesOf(
        call(withFacts),
        call(withFacts),
        call({ prompt: { ...withFacts.prompt, earlierMessages: 6 }, turnId: 't2' }),
      ),
    ).toEqual([[], [], ['context']]);
  });

  it('names a pause of more than five minutes', () =>
    expect(causesOf(call({}), call({}, 301))).toEqual([[], ['expired']]));

  it('names nothing that events of earlier versions do not tell', () =>
    expect(causesOf(call({ prompt: undefined }), call({}), call({ prompt: undefined }))).toEqual([
      [],
      [],
      [],
    ]));
});
