import { describe, expect, it } from '@jest/globals';
import { coursesOf, formatPercent, workedAtOf } from './agent-load.js';

const START = Date.parse('2026-11-22T10:00:00.000Z');
const sample = (seconds: number, cpuMs: number, memoryBytes = 1_024) => ({
  ...{ at: new Date(START + seconds * 1_000).toISOString(), cpuMs, memoryBytes, diskBytes: 2_048 },
  ...{ diskReadBytes: 0, diskWrittenBytes: 0, turns: 0, modelCalls: 0, toolCalls: 0 },
  ...{ inputTokens: 0, outputTokens: 0 },
});

describe('the load of an agent', () => {
  it('is nothing without a sample', () =>
    expect(coursesOf({ agentId: 'a', latest: null, recent: [], today: null })).toEqual([]));

  it('has the newest values as text, and the range of the last minutes', () => {
    const recent = [sample(0, 30), sample(30, 3_000, 4_096)];
    const courses = coursesOf({ agentId: 'a', latest: sample(30, 3_000, 4_096), recent, today: null });
    expect(courses.map(({ label, text }) => [label, text])).toEqual([
      ['CPU', '10 %'],
      ['Memory', '4.0 KiB'],
      ['Disk', '2.0 KiB'],
    ]);
    expect(courses[0]?.tip).toBe('CPU: 0.1 % to 10 % in 2 samples of 30 s');
  });

  it('is no processor time and unknown memory between samples that are far apart', () => {
    const recent = [sample(0, 300), sample(300, 300)];
    const latest = sample(300, 300);
    const [cpu, memory] = coursesOf({ agentId: 'a', latest, recent, today: null });
    expect(cpu?.rows.map(({ values }) => values[0])).toEqual([0, 0, 1, 0, 0, 1]);
    expect(memory?.rows.map(({ values }) => values[0])).toEqual([null, null, 1_024, null, null, 1_024]);
    expect(cpu?.rows.map(({ at }) => (at - START) / 1_000)).toEqual([-1_500, -30, 0, 30, 270, 300]);
  });

  it.each([
    [0, '0 %'],
    [0.04, '0.0 %'],
    [9.94, '9.9 %'],
    [42.4, '42 %'],
  ])('prints %s percent as %s', (percent, text) => expect(formatPercent(percent)).toBe(text));
});

describe('the time of the last work of an agent', () => {
  const latest = sample(30, 300);
  it('is its newest turn, also days after the last heartbeat and without a sample', () => {
    const lastTurnAt = '2026-11-20T10:00:00.000Z';
    expect(workedAtOf({ lastSeenAt: null, lastTurnAt })).toBe(lastTurnAt);
    expect(workedAtOf({ lastSeenAt: '2026-11-18T10:00:00.000Z', lastTurnAt })).toBe(lastTurnAt);
    expect(workedAtOf({ lastSeenAt: null, lastTurnAt }, { latest })).toBe(latest.at);
    expect(workedAtOf({ lastSeenAt: null, lastTurnAt: null }, { latest: null })).toBeNull();
  });
});
