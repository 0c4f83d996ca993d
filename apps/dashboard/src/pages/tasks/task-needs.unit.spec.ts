import { describe, expect, it } from '@jest/globals';
import { needOf, needyTasks } from './task-needs.js';
import type { Task } from './task-row.js';

const SESSION = '0b5d6a3e-6f0c-4d65-9c1a-3f6f7f3f1a01';
const APPROVALS = new Map([[SESSION, 'approval-1']]);
const task = (fields: Partial<Task> = {}): Task => ({
  ...{ id: 'one', kind: 'task', title: 'One', state: 'queued', priority: 5, capabilities: [] },
  ...{ agentId: null, worker: null, epoch: 0, strikes: [], project: null, parentAgentId: null },
  ...{ parentTaskId: null, deadline: null, sessionId: null, turnId: null, startedAt: null },
  ...{ queuedAt: '2026-11-27T10:00:00.000Z', endedAt: null, result: null, waiting: null },
  ...fields,
});
const noAgent = { reason: 'no_agent' as const, missing: ['tides'], agentId: null, place: null, until: null };
const failed = { state: 'failed' as const, endedAt: '2026-11-27T10:05:00.000Z', strikes: ['no such thing'] };

describe('the need of a task', () => {
  it('is none while it waits for a busy agent, works, or has completed', () => {
    const busy = { ...noAgent, reason: 'busy' as const, missing: [], place: 1 };
    expect(needOf(task({ waiting: busy }), APPROVALS)).toBeNull();
    expect(needOf(task({ state: 'running' }), APPROVALS)).toBeNull();
    expect(needOf(task({ state: 'completed', endedAt: '2026-11-27T10:05:00.000Z' }), APPROVALS)).toBeNull();
  });

  it('names the approval of its session until it has ended', () => {
    const running = task({ state: 'running', sessionId: SESSION });
    expect(needOf(running, APPROVALS)).toMatchObject({ reason: 'approval', to: '/approvals?id=approval-1' });
    expect(needOf(task({ ...failed, sessionId: SESSION }), APPROVALS)).toMatchObject({ reason: 'failed' });
  });

  it('names the capabilities that no agent has, and the last failure', () => {
    expect(needOf(task({ waiting: noAgent }), APPROVALS)).toMatchObject({
      ...{ text: 'no agent has tides', to: '/agents?spawn=1&can=tides' },
    });
    expect(needOf(task(failed), APPROVALS)).toMatchObject({ text: 'no such thing', to: '/tasks/one' });
  });
});

describe('a failed task that another one tries again', () => {
  it('needs no person, but the other one does if it fails too', () => {
    const again = task({ id: 'two', ...failed, retryOf: 'one', retriedBy: null });
    const tasks = [task({ ...failed, retriedBy: 'two' }), again];
    expect(needyTasks(tasks, APPROVALS).map(({ task: { id } }) => id)).toEqual(['two']);
  });
});

describe('the tasks that need a person', () => {
  it('are each there once: approvals first, then those without an agent, then failures', () => {
    const tasks = [
      task({ id: 'failed', ...failed }),
      task({ id: 'alone', waiting: noAgent }),
      task({ id: 'asks', state: 'running', sessionId: SESSION }),
      task({ id: 'fine' }),
      task({ id: 'failed', ...failed }),
    ];
    expect(needyTasks(tasks, APPROVALS).map(({ task: { id } }) => id)).toEqual(['asks', 'alone', 'failed']);
  });
});
