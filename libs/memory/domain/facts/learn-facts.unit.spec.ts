import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Fact } from '@antiphon/contracts/memory';
import { Fact as FactSchema } from '@antiphon/contracts/memory';
import { isActive, learnFacts, topicOf } from '@antiphon/memory-domain';
import type { FactIds, Said } from '@antiphon/memory-domain';

const eventId = (n: number): string => `0198a000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`;
/** Makes ids unique enough for the test: the event's last digits, then n's. */
const factId: FactIds = (source, n) =>
  `${source.slice(0, 24)}${source.slice(26)}${n.toString(16).padStart(2, '0')}`;
const said = (n: number, text: string): Said => ({
  eventId: eventId(n),
  text,
  at: new Date(Date.UTC(2026, 10, 21, 12, 0, n)).toISOString(),
});
const given = (...texts: string[]): readonly Fact[] =>
  texts.reduce<readonly Fact[]>((facts, text, n) => learnFacts(facts, said(n, text), factId), []);
const shown = (facts: readonly Fact[]): string[] =>
  facts.map((fact) => `${fact.predicate}: ${fact.object}${isActive(fact) ? '' : ' (superseded)'}`);

describe('learning', () => {
  it('records subject, time, source and confidence', () =>
    expect(given('my name is Ada')).toEqual([
      {
        factId: factId(eventId(0), 0),
        subject: 'user',
        predicate: 'name',
        object: 'Ada',
        confidence: 0.9,
        learnedAt: said(0, '').at,
        supersededAt: null,
        sourceEventId: eventId(0),
      },
    ]));

  // @shows K14 U53
  it('supersedes a fact of the same subject and predicate, and keeps it', () => {
    const facts = given('I live in London', 'my cat is Turing', 'Now I live in Paris');
    expect(shown(facts)).toEqual(['lives in: London (superseded)', 'cat: Turing', 'lives in: Paris']);
    expect(facts[0]?.supersededAt).toBe(said(2, '').at);
  });

  // @shows U53
  it('learns nothing from a repetition', () =>
    expect(given('my name is Ada', 'my name is ADA')).toHaveLength(1));

  it('can return to an earlier object', () =>
    expect(shown(given('I live in Rome', 'I live in Oslo', 'I live in Rome'))).toEqual([
      'lives in: Rome (superseded)',
      'lives in: Oslo (superseded)',
      'lives in: Rome',
    ]));

  it('supersedes a fact within one message', () =>
    expect(shown(given('My name is Ada. No, my name is Eve.'))).toEqual([
      'name: Ada (superseded)',
      'name: Eve',
    ]));

  it('does not modify its input', () => {
    const before = given('I live in Rome');
    const copy = structuredClone(before);
    learnFacts(before, said(9, 'I live in Oslo'), factId);
    expect(before).toEqual(copy);
  });
});

describe('for any messages', () => {
  const text = fc
    .tuple(
      fc.constantFrom('my name is', 'I live in', 'my cat is', 'is my name'),
      fc.constantFrom('A', 'B', 'c'),
    )
    .map(([start, end]) => `${start} ${end}.`);
  const talk = fc.array(
    fc.array(text, { maxLength: 3 }).map((texts) => texts.join(' ')),
    { maxLength: 12 },
  );

  it('exactly one fact of a subject and predicate is in force', () =>
    fc.assert(
      fc.property(talk, (texts) => {
        const facts = given(...texts);
        const active = facts.filter(isActive).map(topicOf);
        expect(active).toHaveLength(new Set(facts.map(topicOf)).size);
        expect(new Set(active).size).toBe(active.length);
      }),
    ));

  it('equal messages give equal facts with unique, valid ids', () =>
    fc.assert(
      fc.property(talk, (texts) => {
        const facts = given(...texts);
        expect(given(...texts)).toEqual(facts);
        expect(new Set(facts.map(({ factId }) => factId)).size).toBe(facts.length);
        facts.forEach((fact) => expect(FactSchema.parse(fact)).toEqual(fact));
      }),
    ));
});
