import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { MAX_PLAN_STEPS, MAX_STEP_BODY, MAX_STEP_TEXT, PlanEvent } from '@antiphon/contracts/agent';
import { mergePlan } from './merge-plan.js';
import { PLAN_LIMITS, parsePlan, renderPlan, toStepText } from './plan-file.js';
import { documentOf, evolvePlan, initialPlan, planStatus } from './plan-fold.js';
import type { PlanFold } from './plan-fold.js';
import { planDecider } from './plan.decider.js';
import type { PlanCommand } from './plan.decider.js';

const now = '2026-11-23T02:00:00.000Z';
const planId = '01998f42-1b00-7c3d-8e9f-a0b1c2d3e4f5';
const digest = 'd'.repeat(64);
const by = { actor: 'key/ada', agentId: null };

const fold = (state: PlanFold, events: readonly PlanEvent[]): PlanFold => events.reduce(evolvePlan, state);
const decide = (state: PlanFold, command: Pick<PlanCommand, 'type' | 'data'>): PlanFold =>
  fold(state, planDecider.decide({ ...command, by, now } as PlanCommand, state));
const render = (state: PlanFold): string => renderPlan(documentOf(state));
const rendered = (state: PlanFold): PlanFold => decide(state, { type: 'RenderPlanFile', data: { digest } });
const planOf = (file: string): PlanFold => {
  const data = { planId, treeId: planId, path: 'a.plan.md', file, kind: 'person' } as const;
  return rendered(decide(initialPlan(), { type: 'CreatePlan', data }));
};
const editOf = (state: PlanFold, file: string, kind: 'person' | 'agent' = 'person') => ({
  ...{ file, digest, now, author: { ...by, kind } },
  base: state.rendered?.document ?? documentOf(state),
});
const merge = (state: PlanFold, file: string, kind: 'person' | 'agent' = 'person') =>
  mergePlan(state, editOf(state, file, kind));
const stepsOf = (file: string): string[] => parsePlan(file).steps.map(({ text }) => text);

describe('the parser of a plan file', () => {
  it.each([
    ['nested boxes', '- [ ] a\n  - [ ] inner\n    - [x] deeper\n- [ ] b\n', ['a', 'b']],
    ['boxes below an ordered step', '1. [ ] a\n   - [ ] inner\n2. [x] b\n', ['a', 'b']],
    ['fenced code', '```md\n- [ ] code\n```\n- [ ] a\n', ['a']],
    ['fenced code of a step', '- [ ] a\n  ```\n  - [ ] code\n  ```\n- [ ] b\n', ['a', 'b']],
    ['a fence of a step that the next step ends', '- [ ] a\n  ```\n- [ ] b\n', ['a', 'b']],
    ['a longer fence', '````\n```\n- [ ] code\n````\n- [ ] a\n', ['a']],
    ['an open fence', '- [ ] a\n\n~~~\n- [ ] code\n', ['a']],
    ['indented code', 'text\n\n    - [ ] code\n\n- [ ] a\n', ['a']],
    ['a tab', '\t- [ ] code\n* [X] a\n', ['a']],
    ['a quote', '> - [ ] quoted\n\n+ [ ] a\n', ['a']],
    ['a comment', '<!--\n- [ ] hidden\n-->\n- [ ] a\n', ['a']],
    ['a box without text', '- [ ]\n- [ ] \n- [ ] a\n', ['a']],
    ['boxes after a list and a paragraph', '- item\n\nText.\n\n  - [ ] a\n', ['a']],
    ['other marks', '- [-] x\n- [] y\n-[ ] z\n- [ ]w\n', []],
    ['inline code', '- [ ] run `- [ ] x` now\n', ['run `- [ ] x` now']],
    ['CRLF and a BOM', '\uFEFF- [ ] a\r\n- [x] b\r\n', ['a', 'b']],
  ])('takes only boxes of the top level as steps: %s', (_, file, steps) => {
    expect(stepsOf(file)).toEqual(steps);
  });

  it('keeps line endings, notes and blank lines, and the id in a comment', () => {
    const file = '# Plan\r\n\r\n- [x] a <!-- s1 -->\r\n\r\n  notes\r\n- [ ] b <!-- s2 -->\r\n';
    expect(render(planOf(file))).toBe(file);
  });

  it('has the limits of the contract', () => {
    expect(PLAN_LIMITS).toEqual({ steps: MAX_PLAN_STEPS, text: MAX_STEP_TEXT, body: MAX_STEP_BODY });
    expect(toStepText(' two\n lines <!-- s3 -->')).toBe('two lines');
  });
});

describe('a plan', () => {
  // @shows chats-C14
  it('without steps is refused: neither done nor a loop', () => {
    expect(() => planOf('# Title\n\n```\n- [ ] a\n```\n')).toThrow(
      expect.objectContaining({ code: 'PLAN.NO_STEPS' }),
    );
    const state = planOf('- [ ] a\n');
    expect(merge(state, 'nothing\n')).toMatchObject({
      isInvalid: true,
      conflicts: [{ kind: 'no_steps' }],
      events: [{ type: 'PlanEditConflicted' }],
    });
    expect(planStatus(state)).toBe('open');
  });

  it('is done when each step has evidence; a failed step is reopened by the next run', () => {
    const evidence = { kind: 'none', reason: 'nothing to check' } as const;
    let state = planOf('- [ ] a\n- [ ] b\n');
    const run = (runId: string) => decide(state, { type: 'StartPlanRun', data: { runId, maxTurns: 9 } });
    state = run(planId);
    const start = { stepId: 's1', runId: planId, sessionId: null, turnId: null };
    state = decide(state, { type: 'StartPlanStep', data: start });
    expect(render(state)).toBe('- [ ] a <!-- s1 started -->\n- [ ] b <!-- s2 -->\n');
    state = decide(state, { type: 'CompletePlanStep', data: { stepId: 's1', evidence, note: null } });
    state = decide(state, {
      type: 'FailPlanStep',
      data: { stepId: 's2', code: 'X', cause: { kind: 'attempt_failed' } },
    });
    expect(render(state)).toBe('- [x] a <!-- s1 -->\n- [ ] b <!-- s2 failed -->\n');
    expect(() => run(digest)).toThrow(expect.objectContaining({ code: 'PLAN.RUNNING' }));
    const end = { runId: planId, reason: 'step_failed', cause: null } as const;
    state = decide(state, { type: 'EndPlanRun', data: end });
    expect(planStatus(state)).toBe('failed');
    state = run(digest);
    expect(state.steps.map(({ status }) => status)).toEqual(['done', 'open']);
    state = decide(state, { type: 'CompletePlanStep', data: { stepId: 's2', evidence, note: null } });
    expect(planStatus(state)).toBe('done');
  });
});

describe('an edit of a plan file', () => {
  const file = '# T\n\n- [ ] a <!-- s1 -->\n- [ ] b <!-- s2 -->\n- [ ] c <!-- s3 -->\n';
  const types = (edited: string, kind?: 'agent') =>
    merge(planOf(file), edited, kind).events.map(({ type }) => type);

  it('becomes one fact for each difference', () => {
    const edited = '# U\n\n- [ ] c <!-- s3 -->\n- [x] a! <!-- s1 -->\n- [ ] new\n';
    expect(types(edited)).toEqual([
      'PlanHeadChanged',
      'PlanStepReworded',
      'PlanStepCompleted',
      'PlanStepRemoved',
      'PlanStepAdded',
      'PlanStepsReordered',
    ]);
    const state = fold(planOf(file), merge(planOf(file), edited).events);
    expect(render(state)).toBe('# U\n\n- [ ] c <!-- s3 -->\n- [x] a! <!-- s1 -->\n- [ ] new <!-- s4 -->\n');
  });

  it('is a conflict where a fact changed the same step, and an agent ticks without evidence', () => {
    const state = planOf(file);
    const later = fold(state, [
      {
        type: 'PlanStepReworded',
        schemaVersion: 1,
        data: { planId, path: 'a.plan.md', ...by, at: now, stepId: 's1', text: 'A', body: '' },
      },
    ]);
    const edit = editOf(state, file.replace('] a', '] aa').replace('[ ] b', '[x] b'), 'agent');
    const { conflicts, events } = mergePlan(later, edit);
    expect(conflicts.map(({ kind, stepId }) => [kind, stepId])).toEqual([
      ['step_changed', 's1'],
      ['tick_without_evidence', 's2'],
    ]);
    expect(render(fold(later, events))).toBe(render(later));
  });

  it('with ids of removed steps alone adds them as new steps, and is a valid plan', () => {
    const first = planOf('- [ ] a\n');
    const second = rendered(fold(first, merge(first, '- [ ] b\n').events));
    expect(second.steps.map(({ stepId }) => stepId)).toEqual(['s2']);
    const file = '- [ ] a <!-- s1 -->\n';
    const { events, conflicts, isInvalid } = merge(second, file);
    expect([conflicts, isInvalid]).toEqual([[], false]);
    const third = fold(second, events);
    expect(render(third)).toBe('- [ ] a <!-- s3 -->\n');
    expect(planStatus(third)).toBe('open');
  });

  it('does not remove a step that is in progress, nor one that its author did not see', () => {
    const state = planOf(file);
    const start = { stepId: 's2', runId: null, sessionId: null, turnId: null };
    const running = decide(state, { type: 'StartPlanStep', data: start });
    const edited = file.replace('- [ ] b <!-- s2 -->\n', '');
    expect(merge(running, edited).conflicts).toMatchObject([{ kind: 'step_removed', stepId: 's2' }]);
    const added = {
      planId,
      path: 'a.plan.md',
      ...by,
      at: now,
      stepId: 's4',
      text: 'd',
      body: '',
      after: 's1',
    };
    const later = fold(state, [{ type: 'PlanStepAdded', schemaVersion: 1, data: added }]);
    const { conflicts, events } = mergePlan(later, editOf(state, edited));
    expect(conflicts).toEqual([]);
    expect(stepsOf(render(fold(later, events)))).toEqual(['a', 'd', 'c']);
  });
});

/** Changes of a document by one side. */
interface Change {
  readonly kind: 'add' | 'remove' | 'reword' | 'move' | 'tick' | 'notes' | 'head' | 'repeat';
  readonly at: number;
  readonly to: number;
  readonly text: string;
}

const planText = fc.oneof(
  fc.constantFrom(
    'a',
    'write tests',
    '`- [ ] x`',
    '[x] odd',
    '<!-- s1 -->',
    'x <!-- s2 -->',
    '- [ ] y',
    '# z',
  ),
  fc.string({ maxLength: 12 }).map((text) => text.replace(/[\r\n]/g, ' ')),
);
const stepBody = fc.constantFrom(
  '',
  '\n',
  '  - [ ] nested\n',
  '  ```\n  - [ ] code\n',
  '\n```\n- [ ] code\n```\n',
  '\nText.\n\n',
  '<!-- note\n- [ ] hidden\n-->\n',
);
const planChange: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom('add', 'remove', 'reword', 'move', 'tick', 'notes', 'head', 'repeat'),
  at: fc.nat(9),
  to: fc.nat(9),
  text: planText,
});

interface Line {
  box: string;
  own: string;
  readonly id: string;
  body: string;
}

const EDITS: Record<Change['kind'], (lines: Line[], line: Line, place: number, text: string) => void> = {
  add: (lines, _, place, text) => void lines.splice(place, 0, { box: ' ', own: text, id: '', body: '' }),
  remove: (lines, line) => void lines.splice(lines.indexOf(line), 1),
  reword: (_, line, __, text) => void (line.own = text),
  tick: (_, line) => void (line.box = line.box === 'x' ? ' ' : 'x'),
  notes: (_, line, __, text) => void (line.body = `  ${text}\n`),
  repeat: (lines, line, place) => void lines.splice(place, 0, { ...line }),
  move: (lines, line, place) => void lines.splice(place, 0, ...lines.splice(lines.indexOf(line), 1)),
  head: () => undefined,
};

/** Applies a change to the text of a file, as an editor does. */
const editFile = (file: string, { kind, at, to, text }: Change): string => {
  const { head, eol, steps } = parsePlan(file);
  const lines = steps.map(({ stepId, text: own, body, isDone }): Line => {
    return { box: isDone ? 'x' : ' ', own, id: stepId === null ? '' : ` <!-- ${stepId} -->`, body };
  });
  const line = lines[at % Math.max(1, lines.length)];
  if (line) EDITS[kind](lines, line, to % (lines.length + 1), text);
  const top = kind === 'head' ? `${text}\n` : head;
  const body = lines.map(({ box, own, id, body: below }) => `* [${box}] ${own}${id}\n${below}`);
  return (top + body.join('')).replaceAll('\n', eol === 'crlf' ? '\r\n' : '\n');
};

describe('1,000 random merges', () => {
  // @shows chats-C14
  it('make the file equal to the facts, box by box, and a second merge changes nothing', () => {
    const planRecord = fc.record({
      head: fc.constantFrom('', '# Plan\n\n', '- item\n\n', '```\n- [ ] x\n```\n'),
      steps: fc.array(fc.tuple(planText, stepBody, fc.boolean()), { minLength: 1, maxLength: 8 }),
      mine: fc.array(planChange, { maxLength: 3 }),
      theirs: fc.array(planChange, { maxLength: 4 }),
      kind: fc.constantFrom('person', 'agent'),
      end: fc.constantFrom('\n', '\r\n'),
    });
    let count = 0;
    fc.assert(
      fc.property(planRecord, ({ head, steps, mine, theirs, kind, end }) => {
        const written = steps.map(([text, body, isDone]) => `- [${isDone ? 'x' : ' '}] ${text}\n${body}`);
        const first = (head + written.join('')).replaceAll('\n', end);
        fc.pre(parsePlan(first).steps.length > 0);
        const base = planOf(first);
        const shown = render(base);
        expect(render(planOf(shown))).toBe(shown);
        // Facts after the base, of another author.
        const ours = fold(base, merge(base, mine.reduce(editFile, shown)).events);
        const edited = theirs.reduce(editFile, shown);
        const merged = mergePlan(ours, { ...editOf(base, edited, kind as 'person'), base: documentOf(base) });
        for (const event of merged.events) PlanEvent.parse(event);
        const after = fold(ours, merged.events);
        const file = render(after);
        const boxes = (text: string) => parsePlan(text).steps.map(({ stepId, isDone }) => [stepId, isDone]);
        expect(boxes(file)).toEqual(after.steps.map(({ stepId, status }) => [stepId, status === 'done']));
        expect(mergePlan(after, { ...editOf(after, file), base: documentOf(after) }).events).toEqual([]);
        if (mine.length === 0 && merged.conflicts.length === 0 && !merged.isInvalid)
          expect(stepsOf(file)).toEqual(stepsOf(edited));
        count++;
      }),
      { numRuns: 1_000 },
    );
    expect(count).toBe(1_000);
  });
});
