import { describe, expect, it } from '@jest/globals';
import { foldRun, foldRunHistory } from './fold-run.js';
import type { RunEvent } from './run-events.js';
import { RunView } from './workflow-requests.js';

const AT = '2026-11-22T10:00:00.000Z';
const LATER = '2026-11-22T10:01:00.000Z';
const runId = '01998f41-9c55-70d7-8c9d-0e1f2a3b4c5d';
const sessionId = '01998f3e-6c1a-7b52-9d0e-5a4c3b2a1f00';
const turnId = '01998f3e-6c2b-7d10-8e4f-9a8b7c6d5e40';
const failure = { code: 'PROVIDER.ERROR', cause: { kind: 'text', text: 'no' } };
const error = { code: 'PROVIDER.ERROR', message: 'no' };

/** Creates an event of the run. */
const fact = (type: RunEvent['type'], data: object = {}): RunEvent =>
  ({ type, schemaVersion: 1, data: { runId, ...data } }) as RunEvent;
const node = (id: string, needs: readonly string[] = []) => ({
  ...{ id, agent: 'main', prompt: id, needs, attempts: 2 },
});
const started = fact('RunStarted', {
  ...{ workflowId: null, workflowVersion: null, inputs: { topic: 'tides' }, startedAt: AT },
  definition: { name: 'two', inputs: {}, nodes: [node('one'), node('two', ['one'])] },
});
const begun = (attempt: number): RunEvent =>
  fact('TaskStarted', { nodeId: 'one', attempt, agentId: 'main', sessionId, turnId, startedAt: AT });
const completed = (output: string): RunEvent =>
  fact('TaskCompleted', { nodeId: 'one', attempt: 1, output, completedAt: LATER });
const failed = (type: 'TaskFailed' | 'TaskAttemptFailed', attempt: number): RunEvent =>
  fact(type, { nodeId: 'one', attempt, ...failure, failedAt: LATER });

const first = (events: readonly RunEvent[]) => foldRun(events)?.tasks[0];
const statuses = (events: readonly RunEvent[]) => {
  const run = foldRun(events);
  return [run?.status, ...(run?.tasks ?? []).map(({ status }) => status)];
};

describe('the fold of a run', () => {
  it('is null before the run started, and has every node after it', () => {
    expect(foldRun([])).toBeNull();
    const run = foldRun([started]);
    expect(RunView.parse(run)).toEqual(run);
    expect(run).toMatchObject({ id: runId, name: 'two', status: 'running', inputs: { topic: 'tides' } });
    expect(run?.tasks[1]).toMatchObject({ id: 'two', needs: ['one'], status: 'waiting', attempt: 0 });
  });

  it('follows a node from ready to its output', () => {
    const ready = fact('TaskReady', { nodeId: 'one', readyAt: AT });
    expect(statuses([started, ready])).toEqual(['running', 'ready', 'waiting']);
    const running = first([started, ready, begun(1)]);
    expect(running).toMatchObject({ status: 'running', attempt: 1, sessionId, turnId, startedAt: AT });
    const ended = first([started, ready, begun(1), completed('done')]);
    expect(ended).toMatchObject({ status: 'completed', output: 'done', endedAt: LATER });
  });

  it('shows the error of a failed attempt until the next one completes', () => {
    const retried = [started, begun(1), failed('TaskAttemptFailed', 1)];
    expect(first(retried)).toMatchObject({ status: 'ready', error, endedAt: null });
    const ended = [...retried, begun(2), completed('done')];
    expect(first(ended)).toMatchObject({ status: 'completed', attempt: 2, error: null });
  });

  it('skips the nodes that wait when the run ends', () => {
    const end = fact('RunFailed', { failedNodes: ['one'], failedAt: LATER });
    const run = [started, begun(1), failed('TaskFailed', 1), end];
    expect(statuses(run.slice(0, 3))).toEqual(['running', 'failed', 'waiting']);
    expect(statuses(run)).toEqual(['failed', 'failed', 'skipped']);
    expect(foldRun(run)?.endedAt).toBe(LATER);
  });

  it('is cancelling until its open nodes have ended', () => {
    const asked = [started, begun(1), fact('RunCancelRequested', { requestedAt: AT })];
    expect(statuses(asked)).toEqual(['cancelling', 'running', 'waiting']);
    const ends = [
      fact('TaskCancelled', { nodeId: 'one', cancelledAt: LATER }),
      fact('RunCancelled', { cancelledAt: LATER }),
    ];
    expect(statuses([...asked, ...ends])).toEqual(['cancelled', 'cancelled', 'skipped']);
  });

  it('clips a long output between two characters', () => {
    const long = `${'a'.repeat(16_383)}\u{1F600}${'b'.repeat(10)}`;
    const { output, outputTruncated } = first([started, begun(1), completed(long)]) ?? {};
    expect(output).toBe(`${'a'.repeat(16_383)}… [clipped: 16383 of 16395 characters]`);
    expect(outputTruncated).toBe(true);
    const whole = 'a'.repeat(16_384);
    expect(first([started, completed(whole)])).toMatchObject({ output: whole, outputTruncated: false });
  });

  it('folds a history to any of its positions, and changes no part of it', () => {
    const events = [begun(1), completed('done')].map((event, index) => ({
      event,
      position: 20 + index * 10,
    }));
    const history = { snapshot: { run: foldRun([started]) }, events };
    const before = structuredClone(history);
    const statusAt = (at: number) => foldRunHistory(history, at)?.tasks[0]?.status;
    expect([19, 20, 29, 30].map(statusAt)).toEqual(['waiting', 'running', 'running', 'completed']);
    expect(history).toEqual(before);
  });
});
