import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { agentScope, resetsAt, scopesAt, taskScopes } from '@antiphon/metering-domain';

const limits = {
  session: 10,
  daily: 20,
  monthly: null,
  sessionMicroUsd: null,
  dailyMicroUsd: 5,
  monthlyMicroUsd: 6,
};

describe('scopesAt', () => {
  it('names session, day and month, each with its own limits', () =>
    expect(scopesAt(limits, 's1', '2026-11-21T23:59:59.999Z')).toEqual([
      { kind: 'session', key: 'session/s1', limitTokens: 10, limitMicroUsd: null },
      { kind: 'day', key: 'day/2026-11-21', limitTokens: 20, limitMicroUsd: 5 },
      { kind: 'month', key: 'month/2026-11', limitTokens: null, limitMicroUsd: 6 },
    ]));

  // @shows J5
  it('rolls day and month at midnight UTC', () =>
    expect(scopesAt(limits, 's1', '2026-12-01T00:00:00.000Z').map(({ key }) => key)).toEqual([
      'session/s1',
      'day/2026-12-01',
      'month/2026-12',
    ]));
});

describe('agentScope', () => {
  it('stands between the session and the day, the agent before its ancestors', () => {
    const scopes = ['child', 'root'].map((id) => agentScope(id, { limitTokens: 5, limitMicroUsd: null }));
    const all = scopesAt(limits, 's1', '2026-11-30T23:59:59.999Z', scopes);
    expect(all.map(({ kind, key }) => `${kind} ${key}`)).toEqual([
      'session session/s1',
      'agent agent/child',
      'agent agent/root',
      'day day/2026-11-30',
      'month month/2026-11',
    ]);
    expect(resetsAt('agent', 'agent/child')).toBeNull();
  });
});

describe('taskScopes', () => {
  it('stand in the order of the request, and never reset', () => {
    const tasks = ['B', 'a'].map((taskId) => ({ taskId, limitTokens: 5, limitMicroUsd: null }));
    expect(taskScopes(tasks)).toEqual([
      { kind: 'task', key: 'task/b', limitTokens: 5, limitMicroUsd: null },
      { kind: 'task', key: 'task/a', limitTokens: 5, limitMicroUsd: null },
    ]);
    expect(resetsAt('task', 'task/a')).toBeNull();
  });
});

describe('resetsAt', () => {
  it.each([
    ['day', 'day/2026-11-21', '2026-11-22T00:00:00.000Z'],
    ['day', 'day/2026-12-31', '2027-01-01T00:00:00.000Z'],
    ['day', 'day/2028-02-28', '2028-02-29T00:00:00.000Z'],
    ['day', 'day/2027-02-28', '2027-03-01T00:00:00.000Z'],
    ['month', 'month/2026-11', '2026-12-01T00:00:00.000Z'],
    ['month', 'month/2026-12', '2027-01-01T00:00:00.000Z'],
  ] as const)('a %s (%s) ends at %s', (kind, key, end) => expect(resetsAt(kind, key)).toBe(end));

  it('a session never resets', () => expect(resetsAt('session', 'session/s1')).toBeNull());

  it('agrees with the calendar on any day', () =>
    fc.assert(
      fc.property(
        fc.date({ min: new Date('2000-01-01'), max: new Date('2199-12-31'), noInvalidDate: true }),
        (date) => {
          const day = date.toISOString().slice(0, 10);
          const next = new Date(Date.parse(`${day}T00:00:00.000Z`) + 86_400_000).toISOString();
          expect(resetsAt('day', `day/${day}`)).toBe(next);
        },
      ),
    ));
});
