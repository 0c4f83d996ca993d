import { describe, expect, it } from '@jest/globals';
import { AnswerSpeech, endOfSentences, toSpeech, type GrowingAnswer } from './answer-speech.js';

const wholeOf = (text: string): string => text.slice(0, endOfSentences(text));

describe('the whole part of a growing text', () => {
  it.each([
    ['ends at the last sentence', 'One. Two! Thr', 'One. Two!'],
    ['does not end at a point that a word may follow', 'It costs 3.', ''],
    ['does not end within a number', 'It costs 3.5 dollars', ''],
    ['ends at a closed quotation', '"Stop." He sto', '"Stop."'],
    ['ends at sentences without spaces', '一つ目。二つ', '一つ目。'],
    ['ends before a list item, whose number is no sentence', 'Steps\n1. Open it', 'Steps\n'],
    ['ends at a blank line', '## Title\n\nThe fi', '## Title\n'],
    ['ends before an open code block', 'Run this\n```sh\nls. now', 'Run this\n'],
    ['ends after a closed code block', 'Run\n```sh\nls. now\n```\nthen', 'Run\n```sh\nls. now\n```\n'],
  ])('%s', (_, text, whole) => {
    expect(wholeOf(text)).toBe(whole);
  });
});

describe('the words of a Markdown text', () => {
  it.each([
    [
      'have no marks',
      '## Title\n\nIt is **42**, see [the docs](https://x.example).',
      'Title It is 42, see the docs.',
    ],
    ['tell the length of code', 'Run:\n\n```sh\nls\ncat a\n```', 'Run: Code in sh, 2 lines.'],
    ['separate the cells of a table', '| a | b |\n| - | - |\n| 1 | 2 |', 'a, b, 1, 2'],
    ['separate list items', '- one\n- two', 'one two'],
    ['keep HTML as text', 'a <b>x</b>', 'a <b>x</b>'],
  ])('%s', (_, markdown, words) => {
    expect(toSpeech(markdown)).toBe(words);
  });
});

const answer = (text: string, given: Partial<GrowingAnswer> = {}): GrowingAnswer => ({
  ...{ turnId: 't', position: 5, text, wholeLength: 0, status: null },
  ...given,
});

describe('the speech of a session', () => {
  it('says each sentence once, and the rest with the end of the answer', () => {
    const speech = new AnswerSpeech();
    const said = ['One', 'One. Tw', 'One. Two. Th', 'One. Two. Th'].map((text) =>
      speech.next([answer(text)]),
    );
    expect(said).toEqual(['', 'One.', 'Two.', '']);
    const ended = answer('One. Two. Three', { status: 'completed' });
    expect([speech.next([ended]), speech.next([ended])]).toEqual([
      'Three The answer has ended: completed.',
      '',
    ]);
  });

  it('says the text of an ended model call though it ends without a point', () => {
    expect(new AnswerSpeech().next([answer('Let me see', { wholeLength: 10 })])).toBe('Let me see');
  });

  it('is silent about answers that had ended before', () => {
    const speech = new AnswerSpeech();
    const old = answer('Old.', { status: 'completed' });
    expect([speech.next([old]), speech.next([old, answer('New. ', { turnId: 'u', position: 9 })])]).toEqual([
      '',
      'New.',
    ]);
  });

  it('says the end of one answer and the start of the next together', () => {
    const speech = new AnswerSpeech();
    const next = answer('', { turnId: 'u', position: 9 });
    speech.next([answer('One. '), next]);
    expect(speech.next([answer('One. Two', { status: 'failed' }), { ...next, text: 'Hi. Yo' }])).toBe(
      'Two The answer has ended: failed. Hi.',
    );
  });

  it('waits while frames are gone before their event, and says that another text begins again', () => {
    const speech = new AnswerSpeech();
    const said = ['One. Two. ', '', 'One. Two. Three. ', 'Uno. Due'].map((text) =>
      speech.next([answer(text)]),
    );
    expect(said).toEqual(['One. Two.', '', 'Three.', 'The answer begins again. Uno.']);
  });
});
