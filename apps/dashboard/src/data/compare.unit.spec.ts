import { describe, expect, it } from '@jest/globals';
import type { LogEvent } from '@antiphon/client';
import { compareSessions, differenceOf } from './compare.js';
import { EMPTY, foldEvents, type Transcript, type Turn } from './transcript.js';

const turn = (turnId: string, version: number, answer: string, costMicroUsd = 1, model = 'm'): Turn => {
  const data = [
    { content: `ask ${turnId.at(-1)}` },
    { text: answer, model, costMicroUsd, usage: { inputTokens: 1, outputTokens: 1 } },
    {},
  ];
  const events = ['TurnRequested', 'ModelCallCompleted', 'TurnCompleted'].map((type, index) => ({
    ...{ type, data: { turnId, ...data[index] }, position: version + index, streamVersion: version + index },
  })) as unknown as LogEvent[];
  return foldEvents(events, null).turns[0] as Turn;
};
const session = (turns: readonly Turn[], more: Partial<Transcript> = {}): Transcript => ({
  ...EMPTY,
  turns,
  ...more,
});
const origin = {
  id: 'o',
  transcript: session([turn('o1', 2, 'one'), turn('o2', 4, 'two'), turn('o3', 6, 'x')]),
};
const point = { sessionId: 'o', version: 3, hash: '', purpose: 'fork', remakes: [] } as const;

describe('a comparison of sessions', () => {
  it('pairs the turns of a fork with those of its origin after the cut', () => {
    const fork = { id: 'f', transcript: session([turn('f2', 3, 'two')], { forkedFrom: point }) };
    const { shared, pairs, firstDifference } = compareSessions(origin, fork);
    expect(shared).toBe(1);
    expect(pairs.map(({ a, b, differs }) => [a?.turnId, b?.turnId, differs.length])).toEqual([
      ['o2', 'f2', 0],
      ['o3', undefined, 6],
    ]);
    expect(firstDifference).toBe(1);
    const swapped = compareSessions(fork, origin);
    expect(swapped.pairs.map(({ a, b }) => [a?.turnId, b?.turnId])).toEqual([
      ['f2', 'o2'],
      [undefined, 'o3'],
    ]);
  });

  it('pairs the turns of a what-if with those that they repeat, from either side', () => {
    const remakes = [{ turnId: 'w2', of: 'o2' }];
    const forkedFrom = { ...point, purpose: 'whatif', remakes } as const;
    const whatIf = { id: 'w', transcript: session([turn('w2', 3, 'zwei', 1, 'n')], { forkedFrom }) };
    const [pair] = compareSessions(origin, whatIf).pairs;
    expect([pair?.a?.turnId, pair?.b?.turnId, pair?.differs]).toEqual(['o2', 'w2', ['model', 'answer']]);
    const [mirrored] = compareSessions(whatIf, origin).pairs;
    expect([mirrored?.a?.turnId, mirrored?.b?.turnId]).toEqual(['w2', 'o2']);
  });

  it('shows the turns that follow the repeated ones, on both sides', () => {
    const remakes = [{ turnId: 'w2', of: 'o2' }];
    const forkedFrom = { ...point, purpose: 'whatif', remakes } as const;
    const turns = [turn('w2', 3, 'zwei'), turn('w3', 5, 'three'), turn('w4', 7, 'four')];
    const { pairs } = compareSessions(origin, { id: 'w', transcript: session(turns, { forkedFrom }) });
    expect(pairs.map(({ a, b }) => [a?.turnId, b?.turnId])).toEqual([
      ['o2', 'w2'],
      ['o3', 'w3'],
      [undefined, 'w4'],
    ]);
  });

  it('calls turns that differ in their cost alone the same conversation', () => {
    const other = { id: 'p', transcript: session([turn('p1', 2, 'one', 9)]) };
    const first = { id: 'o', transcript: session([turn('o1', 2, 'one')]) };
    const { pairs, firstDifference } = compareSessions(first, other);
    expect([pairs[0]?.differs, firstDifference]).toEqual([['cost'], -1]);
  });
});

describe('the difference of two texts', () => {
  it.each([
    ['It is 42.', 'It is 43.', { before: 'It is 4', a: '2', b: '3', after: '.' }],
    ['aa', 'aaa', { before: 'aa', a: '', b: 'a', after: '' }],
    ['same', 'same', { before: 'same', a: '', b: '', after: '' }],
    ['x😀y', 'x😁y', { before: 'x', a: '😀', b: '😁', after: 'y' }],
  ])('is found between %s and %s', (a, b, expected) => {
    expect(differenceOf(a, b)).toEqual(expected);
  });
});
