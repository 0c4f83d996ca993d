import { describe, expect, it } from '@jest/globals';
import type { PlanView } from '@antiphon/contracts/agent';
import { renderPlanView } from './plan.command.js';

const step = (stepId: string, status: PlanView['steps'][number]['status']) =>
  ({ stepId, text: `text of ${stepId}`, status, note: null }) as PlanView['steps'][number];
const given = (change: Partial<PlanView>): PlanView =>
  ({
    ...{
      path: 'a.plan.md',
      status: 'running',
      conflicts: [],
      steps: [step('s1', 'done'), step('s2', 'open')],
    },
    run: { runId: 'r', agentId: 'main', turns: 1, maxTurns: 50, isStopRequested: false, ended: null },
    ...change,
  }) as PlanView;

describe('a plan while a run drives it', () => {
  it('names the step that the agent does now', () =>
    expect(renderPlanView(given({ steps: [step('s1', 'done'), step('s2', 'started')] }))).toBe(
      [
        ...['a.plan.md: running', '  [x] s1  text of s1', '  [ ] s2  text of s2 (started)'],
        '  run by main, 1 of 50 turns, does s2 now',
      ].join('\n'),
    ));

  it('says that it waits between two steps, also for a paused agent', () =>
    expect(renderPlanView(given({}))).toMatch(/1 of 50 turns, waits to do the next step$/));

  it('has the reason of the end, and no line without a run', () => {
    const ended = { reason: 'failed', message: 'FILE.NO_BYTES: gone' };
    const run = { ...given({}).run, ended } as PlanView['run'];
    expect(renderPlanView(given({ run, status: 'open' }))).toMatch(/turns, failed: FILE.NO_BYTES: gone$/);
    expect(renderPlanView(given({ run: null, status: 'open' }))).not.toContain('run by');
  });
});
