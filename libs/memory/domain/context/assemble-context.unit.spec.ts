import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Fact } from '@antiphon/contracts/memory';
import { assembleContext, estimateTokens, fitSoul, toSoul } from '@antiphon/memory-domain';

const fact = (n: number, predicate: string, object: string): Fact => ({
  factId: `0198a000-0000-8000-8000-${n.toString(16).padStart(12, '0')}`,
  subject: 'user',
  predicate,
  object,
  confidence: 0.8,
  learnedAt: new Date(n * 1_000).toISOString(),
  supersededAt: null,
  sourceEventId: `0198a000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`,
});

const FACTS = [
  fact(1, 'name', 'Ada'),
  fact(2, 'lives in', 'Berlin'),
  fact(3, 'favorite color', 'blue'),
  fact(4, 'cat', 'Turing'),
];
const soul = toSoul('# Soul\n\nYou are kind.\n');

const assemble = (query: string, budgetTokens: number) =>
  assembleContext({ soul, facts: FACTS, query, budgetTokens });
const predicates = (query: string, budgetTokens = 4_000): string[] =>
  assemble(query, budgetTokens).facts.map(({ predicate }) => predicate);

describe('a context', () => {
  it('has all facts when they fit, newest first without a relevant query', () =>
    expect(predicates('hello')).toEqual(['cat', 'favorite color', 'lives in', 'name']));

  it.each([
    ['what is my name?', 'name'],
    ['Who am I', 'name'],
    ['where do I live?', 'lives in'],
    ['which city is home', 'lives in'],
    ['what are my favourite colours', 'favorite color'],
    ['tell me about Turing', 'cat'],
  ])('%s: puts %s first', (query, predicate) => expect(predicates(query)[0]).toBe(predicate));

  it('has the relevant facts when not all fit', () =>
    expect(predicates('where do I live?', 70)).toEqual(['lives in']));

  it('has the complete soul, counted once', () => expect(assemble('x', 4_000).soul).toEqual(soul));

  it('is empty when nothing fits the budget', () =>
    expect(assemble('x', 1)).toEqual({ soul: null, facts: [], tokens: 0 }));

  it('never exceeds its budget and counts at least the cost of its parts', () =>
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 400 }),
        fc.array(fc.string({ unit: 'binary' })),
        (budget, objects) => {
          const facts = objects.map((object, n) => fact(n, 'x', object));
          const context = assembleContext({ soul, facts, query: objects[0] ?? '', budgetTokens: budget });
          const text = [context.soul?.text ?? '', ...context.facts.map(({ object }) => object)].join('\n');
          expect(context.tokens).toBeLessThanOrEqual(budget);
          expect(estimateTokens(text)).toBeLessThanOrEqual(context.tokens + 1);
        },
      ),
    ));
});

describe('a soul', () => {
  it('is cut at a line when it is larger than the budget', () => {
    const long = toSoul(Array.from({ length: 100 }, (_, n) => `- rule number ${n}`).join('\n'));
    const fitted = fitSoul(long, 100);
    expect(fitted?.tokens).toBeLessThanOrEqual(100);
    expect(long?.text.startsWith(`${fitted?.text}\n`)).toBe(true);
  });

  it('is null for a blank document', () => expect(toSoul(' \r\n ')).toBeNull());
});

describe('estimateTokens', () => {
  it('counts UTF-8 bytes, three a token, rounded up', () =>
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) =>
        expect(estimateTokens(text)).toBe(Math.ceil(Buffer.byteLength(text) / 3)),
      ),
    ));
});
