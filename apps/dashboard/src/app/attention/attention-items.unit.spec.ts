import { describe, expect, it } from '@jest/globals';
import { attentionItems, shownItems, type AttentionReads } from './attention-items.js';

const NOW = Date.parse('2026-11-27T10:00:00Z');
const itemsOf = (given: object) => attentionItems(given as AttentionReads, NOW);
const titles = (given: object): string[] => itemsOf(given).map(({ title }) => title);
const failure = (position: number, type: string, code: string, stream = 'session-s') => ({
  ...{
    position,
    type,
    streamId: stream,
    category: 'session',
    severity: 'error',
    recordedAt: '2026-11-27T10:00:00Z',
  },
  data: { error: { code, message: `because of ${position}` } },
});

describe('what needs attention', () => {
  it('is nothing on a fresh stack', () => {
    const health = {
      services: { agent: { healthy: true, facts: {} } },
      engines: { nats: { healthy: true } },
    };
    const given = { approvals: { approvals: [] }, health: { ...health, agentsInError: [] } };
    const empty = { budgets: { scopes: [] }, failures: { events: [] } };
    expect(titles({ ...given, ...empty, stopped: { streams: [], messages: [], hasMore: false } })).toEqual(
      [],
    );
    expect(titles({})).toEqual([]);
  });

  it('is each source once, with what holds before what has happened', () => {
    const given = {
      approvals: {
        approvals: [{ id: 'p', agentId: 'writer', tool: 'write', requestedAt: '2026-11-27T10:00:00Z' }],
      },
      health: {
        services: {
          memory: { healthy: false, error: 'no answer' },
          agent: { healthy: true, facts: { pausedProviders: [{ provider: 'openai', until: '10:05' }] } },
        },
        engines: {},
        agentsInError: [{ agentId: 'a', code: 'X.Y' }],
      },
      budgets: {
        scopes: [
          { key: 'day/1', limitMicroUsd: 100, settledMicroUsd: 81, limitTokens: null, settledTokens: 5 },
          { key: 'day/2', limitMicroUsd: 100, settledMicroUsd: 79, limitTokens: null, settledTokens: 5 },
          { key: 'day/3', limitMicroUsd: null, settledMicroUsd: 0, limitTokens: 10, settledTokens: 11 },
        ],
      },
      stopped: {
        streams: [{ reason: 'bad row', parkedAt: '2026-11-27T10:00:00Z' }],
        messages: [],
        hasMore: false,
      },
      failures: { events: [failure(9, 'RunFailed', 'RUN.BAD')] },
    };
    expect(titles(given)).toEqual([
      'Agent a is in error',
      'memory is down',
      '110 % of the budget day/3 is spent',
      '1 events could not be handled',
      'writer asks to call write',
      'Provider openai is paused',
      '81 % of the budget day/1 is spent',
      expect.stringMatching(/run failed/i),
    ]);
  });

  it('groups failures with an equal cause, and names the newest', () => {
    const events = [
      failure(9, 'TurnFailed', 'BUDGET.EXCEEDED'),
      failure(8, 'TurnFailed', 'PROVIDER.ERROR'),
      failure(7, 'TurnFailed', 'BUDGET.EXCEEDED'),
    ];
    const items = itemsOf({ failures: { events } });
    expect(items.map(({ id, to }) => [id, to])).toEqual([
      ['failure 9', '/events?severity=error&type=TurnFailed'],
      ['failure 8', '/sessions/s'],
    ]);
    expect(items[0]?.title).toMatch(/^2 × .*: BUDGET\.EXCEEDED$/);
    expect(items[0]?.reason).toBe('because of 9');
  });

  it('is a task without an agent, a plan with conflicts, a late root and a key that ends in 7 days', () => {
    const task = (id: string, missing: readonly string[], reason = 'no_agent') => ({
      ...{ id, title: id, queuedAt: '2026-11-27T09:00:00Z' },
      waiting: { reason, missing, agentId: null, place: null, until: null },
    });
    const key = (name: string, expiresAt: string | null, status = 'active') => ({
      ...{ id: name, name, status, expiresAt },
    });
    const root = { uncovered: 3, nextAt: '2026-11-27T09:53:00Z', everySeconds: 600 };
    const given = {
      tasks: {
        tasks: [
          task('Survey', ['tide']),
          task('Chart', ['tide']),
          task('Count', ['birds']),
          task('x', [], 'busy'),
        ],
      },
      plans: {
        plans: [
          { path: 'a b.plan.md', conflicts: 2, changedAt: '2026-11-27T09:00:00Z' },
          { path: 'c.plan.md', conflicts: 0 },
        ],
      },
      roots: root,
      keys: {
        keys: [
          key('soon', '2026-12-03T10:00:00Z'),
          key('later', '2026-12-05T10:00:00Z'),
          key('never', null),
          key('gone', '2026-11-28T10:00:00Z', 'revoked'),
        ],
      },
    };
    expect(itemsOf(given).map(({ title, reason, to }) => [title, reason, to])).toEqual([
      ['2 tasks have no agent', 'no agent has tide', '/tasks?tab=queued'],
      ['The task Count has no agent', 'no agent has birds', '/tasks/Count'],
      ['The plan a b.plan.md has conflicts', expect.stringContaining('2 parts'), '/plans/a%20b.plan.md'],
      ['A signed root of the log is late', expect.stringContaining('3 events'), '/audit'],
      ['The key soon ends soon', expect.any(String), '/settings'],
    ]);
    expect(titles({ roots: { ...root, nextAt: '2026-11-27T09:56:00Z' } })).toEqual([]);
  });

  it('leaves out a failed task that another one tries again', () => {
    const end = (position: number, taskId: string) => ({
      ...failure(position, 'TaskEnded', '', `task-${taskId}`),
      ...{ category: 'task', data: { taskId, status: 'failed', message: `bad ${taskId}` } },
    });
    const failures = { events: [end(9, 'a'), end(8, 'b')] };
    expect(itemsOf({ failures }).map(({ reason }) => reason)).toEqual(['bad a', 'bad b']);
    const retried = { tasks: [{ id: 'a' }] };
    expect(itemsOf({ failures, retried }).map(({ reason }) => reason)).toEqual(['bad b']);
  });

  it('groups agents in error by their code, and failed tasks of the queue by their text', () => {
    const agent = (agentId: string, code: string) => ({ agentId, code });
    const agentsInError = [agent('a', 'PROVIDER.ERROR'), agent('b', 'PROVIDER.ERROR'), agent('c', 'X.Y')];
    expect(titles({ health: { services: {}, engines: {}, agentsInError } })).toEqual([
      '2 agents are in error: PROVIDER.ERROR',
      'Agent c is in error',
    ]);
    const end = (position: number, status: string) => ({
      ...failure(position, 'TaskEnded', '', `task-${position}`),
      ...{ category: 'task', data: { status, message: 'no strike is left' } },
    });
    const failures = { events: [end(9, 'failed'), end(8, 'completed'), end(7, 'failed')] };
    expect(itemsOf({ failures }).map(({ title, to }) => [title, to])).toEqual([
      ['2 × Task failed', '/tasks?tab=failed'],
    ]);
  });

  it('is hidden until its time once a person has put it away, and a newer failure is not', () => {
    const items = itemsOf({ failures: { events: [failure(9, 'RunFailed', 'X')] } });
    expect(shownItems(items, { 'failure 9': 100 }, 99)).toEqual([]);
    expect(shownItems(items, { 'failure 9': 100 }, 101)).toHaveLength(1);
    const newer = itemsOf({ failures: { events: [failure(10, 'RunFailed', 'X')] } });
    expect(shownItems(newer, { 'failure 9': 100 }, 99)).toHaveLength(1);
  });
});
