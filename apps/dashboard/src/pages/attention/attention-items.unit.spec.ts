import { describe, expect, it } from '@jest/globals';
import { attentionItems, shownItems, type AttentionReads } from './attention-items.js';

const reads = (given: object): AttentionReads => given as AttentionReads;
const titles = (given: object): string[] => attentionItems(reads(given)).map(({ title }) => title);
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
    const given = { approvals: { approvals: [] }, agents: { agents: [{ state: 'idle' }] }, health };
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
      agents: { agents: [{ id: 'a', name: 'Alpha', state: 'error', error: { code: 'X.Y', failures: 5 } }] },
      health: {
        services: {
          memory: { healthy: false, error: 'no answer' },
          agent: { healthy: true, facts: { pausedProviders: [{ provider: 'openai', until: '10:05' }] } },
        },
        engines: {},
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
      'Agent Alpha is in error',
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
    const items = attentionItems(reads({ failures: { events } }));
    expect(items.map(({ id, to }) => [id, to])).toEqual([
      ['failure 9', '/events?severity=error&type=TurnFailed'],
      ['failure 8', '/sessions/s'],
    ]);
    expect(items[0]?.title).toMatch(/^2 × .*: BUDGET\.EXCEEDED$/);
    expect(items[0]?.reason).toBe('because of 9');
  });

  it('is hidden until its time once a person has put it away, and a newer failure is not', () => {
    const items = attentionItems(reads({ failures: { events: [failure(9, 'RunFailed', 'X')] } }));
    expect(shownItems(items, { 'failure 9': 100 }, 99)).toEqual([]);
    expect(shownItems(items, { 'failure 9': 100 }, 101)).toHaveLength(1);
    const newer = attentionItems(reads({ failures: { events: [failure(10, 'RunFailed', 'X')] } }));
    expect(shownItems(newer, { 'failure 9': 100 }, 99)).toHaveLength(1);
  });
});
