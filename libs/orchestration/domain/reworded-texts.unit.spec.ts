import { TEXTS } from '@antiphon/contracts/causes';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { planDecider } from './plans/plan.decider.js';
import type { PlanCommand } from './plans/plan.decider.js';
import { begin as beginNode, fail, start } from './run/run.examples.js';
import { runDecider } from './run/run.decider.js';
import { abandon, assign, begin, expire, finish, queue } from './tasks/task.examples.js';
import { taskDecider } from './tasks/task.decider.js';
import { workflowDecider } from './workflow/workflow.decider.js';
import type { WorkflowCommand } from './workflow/workflow.decider.js';

interface Decides<State, Command, Event> {
  readonly initialState: () => State;
  readonly decide: (command: Command, state: State) => Event[];
  readonly evolve: (state: State, event: Event) => State;
}

/** Returns the facts of commands, each decided in the state after those before it. */
const factsOf = <State, Command, Event>(
  { initialState, decide, evolve }: Decides<State, Command, Event>,
  commands: readonly Command[],
): Event[] => {
  let state = initialState();
  return commands.flatMap((command) => {
    const events = decide(command, state);
    state = events.reduce(evolve, state);
    return events;
  });
};

const id = '01998f42-1b00-7c3d-8e9f-a0b1c2d3e4f5';
const cause = { kind: 'agent_terminated', agentId: 'main' } as const;
const common = { now: '2026-11-23T02:00:00.000Z', by: { actor: 'runtime', agentId: null } };

const PLAN = (
  [
    ['CreatePlan', { planId: id, treeId: id, path: 'a.plan.md', file: '- [ ] a\n', kind: 'person' }],
    ['StartPlanRun', { runId: id, maxTurns: 9 }],
    ['StartPlanStep', { stepId: 's1', runId: id, sessionId: null, turnId: null }],
    ['FailPlanStep', { stepId: 's1', code: 'X', cause }],
    ['EndPlanRun', { runId: id, reason: 'step_failed', cause: { kind: 'plan_step_failed', why: cause } }],
  ] as const
).map(([type, data]) => ({ ...common, type, data }) as unknown as PlanCommand);

const definition = { name: 'one', inputs: {}, nodes: [] };
const WORKFLOW = (
  [
    ['SaveWorkflow', { workflowId: id, definition }],
    ['ValidateWorkflow', { result: { code: 'WORKFLOW.CYCLE', cause } }],
  ] as const
).map(([type, data]) => ({ ...common, type, data }) as unknown as WorkflowCommand);

const ATTEMPTS = [assign(1), begin(1), finish('failed', { cause, notBefore: common.now })];

const facts = (): readonly { readonly type: string; readonly data: object }[] => [
  ...factsOf(taskDecider, [queue(), ...ATTEMPTS, abandon]),
  ...factsOf(taskDecider, [queue({ deadline: common.now }), expire(common.now)]),
  ...factsOf(runDecider, [
    start,
    beginNode('top'),
    fail('top', true),
    beginNode('top', 2),
    fail('top', false),
  ]),
  ...factsOf(planDecider, PLAN),
  ...factsOf(workflowDecider, WORKFLOW),
];

afterEach(() => void jest.restoreAllMocks());

describe('facts of tasks, runs, plans and workflows', () => {
  it('are the same after each text was reworded', () => {
    const before = facts();
    for (const kind of Object.keys(TEXTS) as (keyof typeof TEXTS)[])
      jest.spyOn(TEXTS, kind).mockReturnValue(`${kind} in another wording`);
    expect(facts()).toEqual(before);
    const types = before.flatMap(({ type, data }) => ('cause' in data || 'strikes' in data ? [type] : []));
    expect([...new Set(types)].sort()).toEqual([
      ...['PlanRunEnded', 'PlanStepFailed', 'TaskAttemptFailed', 'TaskCancelRequested', 'TaskEnded'],
      ...['TaskFailed', 'TaskRequeued', 'WorkflowRefused'],
    ]);
  });
});
