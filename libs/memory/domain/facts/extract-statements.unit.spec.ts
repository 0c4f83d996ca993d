import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { MAX_STATEMENTS, extractStatements } from '@antiphon/memory-domain';
import { processorMs } from '@antiphon/testing';

const told = (text: string): string[] =>
  extractStatements(text).map(({ predicate, object }) => `${predicate}: ${object}`);

describe('the statement patterns', () => {
  // @shows U52
  it.each([
    ['my name is Ada', 'name: Ada'],
    ['My name is Ada Lovelace.', 'name: Ada Lovelace'],
    ['MY NAME IS ADA!', 'name: ADA'],
    ['my   name\tis   Ada', 'name: Ada'],
    ["Hi! My name's Ada, can you help me?", 'name: Ada'],
    ['My name’s Ada — nice to meet you', 'name: Ada'],
    ['my name is "Ada"', 'name: Ada'],
    ['my name is **Ada**', 'name: Ada'],
    ['My name is: Ada', 'name: Ada'],
    ['my name is actually Ada, not Eve', 'name: Ada'],
    ['Actually, my name is Ada now.', 'name: Ada'],
    ['My name is Dr. J. R. Smith.', 'name: Dr. J. R. Smith'],
    ['I live in London', 'lives in: London'],
    ['i live in st. louis.', 'lives in: st. louis'],
    ['I live in Paris, France.', 'lives in: Paris, France'],
    ['I now live in Berlin with my wife', 'lives in: Berlin'],
    ["I'm currently living in New York City, and it is loud", 'lives in: New York City'],
    ['I am based in Oslo since May', 'lives in: Oslo'],
    ['my favorite color is blue', 'favorite color: blue'],
    ['My favourite colours are blue and green', 'favorite colors: blue and green'],
    ['my dog is called Rex', 'dog: Rex'],
    ["my dog's Rex", 'dog: Rex'],
    ['by the way my dog is Rex', 'dog: Rex'],
    ["My dog's name is Rex", "dog's name: Rex"],
    ['my mother in law is Eve', 'mother in law: Eve'],
    ['my e-mail is ada.l@example.org.', 'e-mail: ada.l@example.org'],
    ['My new phone number is 555-1234, thanks', 'phone number: 555-1234'],
    ['my car is a red one, which I like', 'car: a red one'],
    ['my budget is 1,000.50 euros', 'budget: 1,000.50 euros'],
    ['my name is Зоя', 'name: Зоя'],
    ["my code word is 'plum 47'.", 'code word: plum 47'],
  ])('extract from %j: %j', (text, fact) => expect(told(text)).toEqual([fact]));

  it('match several times in one message', () => {
    expect(told('My name is Ada and I live in London, and my cat is Turing.')).toEqual([
      'name: Ada',
      'lives in: London',
      'cat: Turing',
    ]);
    expect(told('my name is Ada I live in London my cat is Turing')).toHaveLength(3);
    expect(told('My name is Ada.\nI live in London\n- my cat is Turing')).toHaveLength(3);
  });

  it('continue after "and" when no new clause starts', () =>
    expect(told('my favorite band is Earth and Fire and I like it')).toEqual([
      'favorite band: Earth and Fire',
    ]));

  it.each(['I told you my name is Ada', "Don't forget my name is Ada", 'remember that my name is Ada'])(
    '%j is the speaker’s own word',
    (text) => expect(told(text)).toEqual(['name: Ada']),
  );

  it('have a lower confidence for an uncertain speaker', () => {
    expect(extractStatements('my name is Ada')[0]?.confidence).toBe(0.9);
    expect(extractStatements('I think my size is 38')[0]?.confidence).toBe(0.5);
  });
});

// @shows U51
describe('no statement is extracted from', () => {
  it.each([
    'what is my name?',
    'Do you know what my name is?',
    'is my name Ada?',
    'Do you think my name is Ada?',
    'my name is Ada?',
    'What if my name is Ada',
    'my name is not Ada',
    "my name isn't Ada",
    'I never said my name is Ada',
    'It is not true that my name is Ada',
    "I don't live in London",
    'I no longer live in London',
    'I lived in London',
    'if my name is Ada, say yes',
    'pretend my name is Ada',
    'She said my name is Ada',
    'I was told my name is Ada',
    'He wrote "my name is Ada" on it',
    '> my name is Ada',
    '```\nmy name is Ada\n```',
    'the code `my name is Ada` fails',
    'my question is whether it works',
    'my goal is that it works',
    'my name is',
    'my is Ada',
    'army name is Ada',
    "we celebrated my daughter's birthday with a concert",
    'making it good for my customers is key',
    'seeing my dog is fun',
    'my kids are so excited',
    'your name is Ada',
  ])('%j', (text) => expect(told(text)).toEqual([]));

  it('an object that is too long', () => expect(told(`my story is ${'long '.repeat(40)}`)).toEqual([]));
});

describe('hostile text', () => {
  it.each([
    ['my '.repeat(300_000)],
    ['my name is '.repeat(100_000)],
    [`my ${"'s ".repeat(200_000)}`],
    [`my name is ${'*'.repeat(200_000)}x`],
    ['"'.repeat(200_000)],
    ['"`'.repeat(200_000)],
    [`${'i now '.repeat(100_000)}live in`],
    [`my name is ${', A'.repeat(100_000)}`],
    ['not '.repeat(100_000) + 'my name is Ada'],
    ['.'.repeat(300_000)],
  ])('is processed in bounded time (%#)', (text) => {
    const tookMs = processorMs(() =>
      expect(extractStatements(text).length).toBeLessThanOrEqual(MAX_STATEMENTS),
    );
    // It takes some 20 ms. A pattern of quadratic time would take minutes.
    expect(tookMs).toBeLessThan(1_500);
  });

  it('gives statements with bounded and non-empty parts', () => {
    const word = fc.constantFrom(
      'my',
      'name',
      'is',
      'i',
      'live',
      'in',
      "i'm",
      'not',
      'and',
      'dog',
      'Ada',
      '?',
      ',',
      '.',
      '"',
      '\n',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.array(word).map((words) => words.join(' ')),
        ),
        (text) => {
          for (const { predicate, object } of extractStatements(text)) {
            expect(predicate).toMatch(/^\S.{0,59}$/su);
            expect(object).toMatch(/^\S[^]{0,119}$/u);
          }
        },
      ),
    );
  });
});
