import { describe, expect, it } from '@jest/globals';
import type { PlanEvent } from '@antiphon/contracts/agent';
import { placeIn } from './agent-checks/agent-examples.spec.js';
import { findingsOf, TIME, uuid } from './audit-examples.spec.js';
import { plansEqualTheirFiles } from './plan-checks.js';

const change = { planId: uuid(1), path: 'a.plan.md', actor: 'key/ada', agentId: null, at: TIME };
const event = (type: PlanEvent['type'], data: object = {}): PlanEvent =>
  ({ type, schemaVersion: 1, data: { ...change, ...data } }) as PlanEvent;
const steps = ['s1', 's2'].map((stepId) => ({ stepId, text: 'x', body: '' }));
const created = event('PlanCreated', { treeId: uuid(2), head: '', eol: 'lf', steps });
const step = (type: PlanEvent['type'], stepId: string) => event(type, { stepId, text: 'x', body: '' });
const rendered = (done: number, all: number) => event('PlanFileRendered', { digest: 'd', done, steps: all });
const run = (type: PlanEvent['type'], n: number) => event(type, { runId: uuid(n) });
const find = (...events: PlanEvent[]) =>
  findingsOf(plansEqualTheirFiles, placeIn(events.map((one) => [`plan-${uuid(1)}`, one])));

// @shows agents-A12
describe('plans-equal-their-files', () => {
  it('finds nothing in a whole plan', () =>
    expect(
      find(
        ...[created, rendered(0, 2), run('PlanRunStarted', 5), step('PlanStepStarted', 's1')],
        ...[step('PlanStepCompleted', 's1'), rendered(1, 2), step('PlanStepAdded', 's3'), rendered(1, 3)],
        ...[step('PlanStepRemoved', 's2'), step('PlanStepReopened', 's1'), rendered(0, 2)],
        run('PlanRunEnded', 5),
      ),
    ).toEqual([]));

  it.each<[string, PlanEvent[], string]>([
    [
      'a box that no fact ticked',
      [created, rendered(1, 2)],
      'violation 2 the file has 1 of 2 boxes ticked; the facts 0 of 2',
    ],
    [
      'a missing step',
      [created, rendered(0, 1)],
      'violation 2 the file has 0 of 1 boxes ticked; the facts 0 of 2',
    ],
    [
      'a step that is not there',
      [created, step('PlanStepCompleted', 's9')],
      'violation 2 PlanStepCompleted of step s9, which is not in the plan',
    ],
    [
      'a step that is done twice',
      [created, step('PlanStepCompleted', 's1'), step('PlanStepCompleted', 's1')],
      'violation 3 PlanStepCompleted of step s1, which was done',
    ],
    [
      'an id that is used again',
      [created, step('PlanStepRemoved', 's1'), step('PlanStepAdded', 's1')],
      'violation 3 step s1 was added twice',
    ],
    [
      'a fact before the plan',
      [rendered(0, 0)],
      'violation 1 PlanFileRendered of a plan that was not created',
    ],
    [
      'a run that ends twice',
      [created, run('PlanRunStarted', 5), run('PlanRunEnded', 5), run('PlanRunEnded', 5)],
      `violation 4 run ${uuid(5)} ended without a start`,
    ],
    ['a run that continues', [created, run('PlanRunStarted', 5)], `open 2 run ${uuid(5)} has not ended`],
  ])('finds %s', (_, events, finding) => expect(find(...events)).toEqual([finding]));
});
