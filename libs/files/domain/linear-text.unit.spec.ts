import { describe, expect, it } from '@jest/globals';
import { growthOf, processorMs } from '@antiphon/testing';
import { parsePlan, renderPlan, toStepText } from '@antiphon/orchestration-domain/plans/plan-file';
import { editBytes } from './edit-text.js';
import { findSequence } from './find-sequence.js';
import { parseIgnoreFile } from './ignore-rules.js';

/** Growth over eight times the size: 8 is linear, 64 is quadratic. Garbage collection adds to it. */
const LINEAR = 32;
const encoder = new TextEncoder();
const blanks = (count: number) => ' '.repeat(count);

const refusedEdit = (file: string, old: string) => () => {
  try {
    editBytes(encoder.encode(file), { old, new: 'x' });
  } catch {
    // The time counts, not the refusal.
  }
};

describe('text of members', () => {
  it('is parsed as a plan in a moment with a line of 150,000 blanks', () => {
    for (const line of [`- [ ] a${blanks(150_000)}b`, `- [ ]${blanks(150_000)}\u2028x`, blanks(150_000)])
      expect(processorMs(() => parsePlan(`- [ ] one\n${line}\n`))).toBeLessThan(250);
  });

  it.each([
    ['blanks in a step', (n: number) => `- [ ] a${blanks(n)}b\n`],
    ['comments in a step', (n: number) => `- [ ] a${'<!-- s1 '.repeat(n / 8)}\n`],
    ['fences', (n: number) => `- [ ] a\n${'`'.repeat(n / 2)}\n${'```\n'.repeat(n / 8)}`],
    ['lines', (n: number) => `- [ ] a\n${'\n'.repeat(n)}`],
    ['steps', (n: number) => '- [ ] a\n'.repeat(n / 8)],
  ])('is parsed as a plan in linear time: %s', (_, text) =>
    expect(growthOf(250_000, (size) => parsePlan(text(size)))).toBeLessThan(LINEAR),
  );

  it('is not read as a plan beyond 1,000 steps, so that 250,000 take as long as 31,250', () => {
    const text = (steps: number) => '- [ ] a\n'.repeat(steps);
    expect(parsePlan(text(1_001)).steps).toHaveLength(1_001);
    expect(parsePlan(text(250_000)).steps).toHaveLength(1_001);
    expect(growthOf(31_250, (steps) => parsePlan(text(steps)))).toBeLessThan(4);
  });

  it('is a plan after its last lines were cut, however many they are', () => {
    const plan = parsePlan(`- [ ] a\n${'\n'.repeat(1_000_000)}`);
    expect(plan.steps).toEqual([{ stepId: null, text: 'a', body: '', isDone: false }]);
  });

  it('keeps its meaning where a step has blanks, a line separator or several ids', () => {
    const { steps } = parsePlan(
      '- [x]   a \u2028 b   <!-- s1 --> <!--  s12\tfailed -->  \n- [ ] c <!-- s1 -->',
    );
    expect(steps.map(({ stepId, text }) => [stepId, text])).toEqual([
      ['s12', 'a \u2028 b   <!-- s1 -->'],
      ['s1', 'c'],
    ]);
    expect(toStepText('a <!-- s1 --> <!-- s2 -->')).toBe('a');
    const document = {
      eol: 'lf',
      head: '',
      steps: [{ stepId: 's1', text: 'a \u2028 b', body: '', status: 'open' }],
    };
    expect(parsePlan(renderPlan(document as Parameters<typeof renderPlan>[0])).steps[0]?.text).toBe(
      'a \u2028 b',
    );
  });

  it('is cut to the text of a step in linear time', () =>
    expect(growthOf(200_000, (size) => toStepText('<!-- s1 -->'.repeat(size / 11)))).toBeLessThan(LINEAR));

  it('is searched by an edit that does not match over 400,000 blanks in a moment', () =>
    expect(processorMs(refusedEdit(`a${blanks(400_000)}b`, `c${blanks(100)}`))).toBeLessThan(1_000));

  it.each<[string, (n: number) => readonly [string, string]]>([
    ['blanks', (n: number) => [`a${blanks(n)}b`, 'c  d']],
    ['equal bytes', (n: number) => ['a'.repeat(n), `${'a'.repeat(n / 4)}b${'a'.repeat(n / 4)}`]],
    ['equal lines', (n: number) => ['a \n'.repeat(n / 3), `${'a\n'.repeat(n / 8)}c\n`]],
    ['marks of one letter', (n: number) => [`a${'\u0315\u0300'.repeat(n / 4)}`, 'b']],
    ['empty lines', (n: number) => ['\n'.repeat(n), 'a\n']],
  ])('is compared with an edit that does not match in linear time: %s', (_, textsOf) =>
    expect(growthOf(100_000, (size) => refusedEdit(...textsOf(size))())).toBeLessThan(LINEAR),
  );

  it.each([
    ['blanks', (n: number) => `a${blanks(n)}b\n`],
    ['backslashes', (n: number) => `a${'\\ '.repeat(n / 2)}\n`],
    ['brackets', (n: number) => `${'['.repeat(n)}\n`],
  ])('is parsed as a .gitignore in linear time: %s', (_, text) =>
    expect(growthOf(250_000, (size) => parseIgnoreFile(text(size)))).toBeLessThan(LINEAR),
  );

  it('is found at each place, also at overlapping ones', () => {
    const naive = (text: string, sought: string) =>
      [...text].flatMap((_, at) => (text.startsWith(sought, at) ? [at] : []));
    for (const text of ['aabaabaaab', 'abcabcabd', 'aaaa', ''])
      for (const sought of ['a', 'aa', 'aab', 'abd', 'abcabd', 'aaaaa'])
        expect(findSequence(text, sought, 100)).toEqual(naive(text, sought));
    expect(findSequence('aaaa', 'a', 2)).toEqual([0, 1]);
  });
});
