import { describe, expect, it } from '@jest/globals';
import type { WorkflowEvent } from '@antiphon/contracts/agent';
import { fold } from '@antiphon/kernel';
import { specFor } from '@antiphon/testing';
import { DIAMOND, NOW, RUN } from '../run/run.examples.js';
import { workflowDecider } from './workflow.decider.js';
import type { WorkflowCommand } from './workflow.decider.js';

const given = specFor(workflowDecider);
const WORKFLOW = '00000000-0000-4000-8000-0000000000f1';
const OTHER_RUN = '00000000-0000-4000-8000-000000000002';

const command = <T extends WorkflowCommand['type']>(
  type: T,
  data: Extract<WorkflowCommand, { type: T }>['data'],
) => ({ type, data, now: NOW }) as unknown as WorkflowCommand;
const save = command('SaveWorkflow', { workflowId: WORKFLOW, definition: DIAMOND });
const accept = command('ValidateWorkflow', { result: { order: ['top'] } });
const refuse = command('ValidateWorkflow', {
  result: { code: 'WORKFLOW.CYCLE', cause: { kind: 'text', text: 'a -> a' } },
});
const run = (runId = RUN) => command('NoteRunStarted', { runId });
const end = (status: 'completed' | 'failed' | 'cancelled', runId = RUN) =>
  command('NoteRunEnded', { runId, status });
const remove = command('DeleteWorkflow', {});

/** Returns the events of these commands, and the status after each event. */
const execute = (...commands: WorkflowCommand[]) => {
  const events: WorkflowEvent[] = [];
  for (const next of commands)
    events.push(
      ...workflowDecider.decide(next, fold(workflowDecider.evolve, workflowDecider.initialState(), events)),
    );
  const states = events.map(
    (_, i) => fold(workflowDecider.evolve, workflowDecider.initialState(), events.slice(0, i + 1)).status,
  );
  return { events, states };
};

describe('a workflow', () => {
  it('passes draft, validating and ready, runs, and completes', () =>
    expect(execute(save, accept, run(), end('completed')).states).toEqual([
      'draft',
      'validating',
      'ready',
      'running',
      'completed',
    ]));

  it('fails with a failed or cancelled run, and can run again', () => {
    expect(execute(save, accept, run(), end('failed')).states.at(-1)).toBe('failed');
    expect(execute(save, accept, run(), end('cancelled'), run(OTHER_RUN)).states.slice(-2)).toEqual([
      'failed',
      'running',
    ]);
  });

  it('remains a draft after a refused validation', () => {
    const { events, states } = execute(save, refuse);
    expect(states).toEqual(['draft', 'validating', 'draft']);
    given(events).when(run()).thenRejects('WORKFLOW.NOT_READY');
  });

  it('runs until its last run ends', () =>
    expect(
      execute(save, accept, run(), run(OTHER_RUN), end('completed'), end('failed', OTHER_RUN)).states.slice(
        -2,
      ),
    ).toEqual(['running', 'failed']));

  it('records the end of a run once', () =>
    given(execute(save, accept, run(), end('completed')).events)
      .when(end('completed'))
      .thenNothing());

  it('rejects a delete while it runs, and every command after a delete', () => {
    given(execute(save, accept, run()).events)
      .when(remove)
      .thenRejects('WORKFLOW.RUNNING');
    given(execute(save, remove).events).when(accept).thenRejects('WORKFLOW.NOT_FOUND');
    given(execute(save, remove).events).when(save).thenRejects('WORKFLOW.NOT_FOUND');
    given([]).when(remove).thenRejects('WORKFLOW.NOT_FOUND');
  });

  it('refuses a save over a version that its editor has not seen, unless it is the same definition', () => {
    const edited = (name: string, expected: number) =>
      command('SaveWorkflow', { workflowId: WORKFLOW, definition: { ...DIAMOND, name }, expected });
    const { events } = execute(save, edited('mine', 1));
    expect(events.map(({ data }) => 'version' in data && data.version)).toEqual([1, 2]);
    given(events).when(edited('theirs', 1)).thenRejects('WORKFLOW.VERSION_CONFLICT');
    expect(execute(save, edited('mine', 1), edited('mine', 1)).events).toHaveLength(3);
  });
});
