import { describe, expect, it } from '@jest/globals';
import type { RunEvent } from '@antiphon/contracts/agent';
import type { Parsed } from './audit-check.js';
import { TIME, findingsOf, uuid } from './audit-examples.spec.js';
import { runsFollowTheirGraph } from './run-checks.js';

const RUN = uuid(800);
const event = <T extends RunEvent['type']>(type: T, data: object = {}): RunEvent =>
  ({ type, schemaVersion: 1, data: { runId: RUN, ...data } }) as RunEvent;
const node = (id: string, needs: string[] = []) => ({ id, agent: 'main', prompt: id, needs, attempts: 2 });

const started = () =>
  event('RunStarted', {
    definition: { name: 'd', inputs: {}, nodes: [node('a'), node('b', ['a'])] },
    inputs: {},
    startedAt: TIME,
  });
const ready = (nodeId: string) => event('TaskReady', { nodeId });
const begun = (nodeId: string, attempt = 1) => event('TaskStarted', { nodeId, attempt });
const completed = (nodeId: string) => event('TaskCompleted', { nodeId, attempt: 1 });
const attemptFailed = (nodeId: string) => event('TaskAttemptFailed', { nodeId, attempt: 1 });
const failed = (nodeId: string) => event('TaskFailed', { nodeId, attempt: 1 });
const cancelled = (nodeId: string) => event('TaskCancelled', { nodeId });
const doneA = () => [ready('a'), begun('a'), completed('a')];

const find = (...events: RunEvent[]): string[] =>
  findingsOf(
    runsFollowTheirGraph,
    events.map((content, index): Parsed<RunEvent> => {
      const place = { workspace: 'default', streamId: `run-${RUN}`, eventId: uuid(index + 1) };
      return {
        place: { ...place, position: index + 1, streamVersion: index + 1 },
        content,
        epoch: undefined,
      };
    }),
  );

describe('runs-follow-their-graph', () => {
  it.each<[string, RunEvent[]]>([
    [
      'completed, with a second attempt',
      [
        started(),
        ready('a'),
        begun('a'),
        attemptFailed('a'),
        begun('a', 2),
        completed('a'),
        ready('b'),
        begun('b'),
        completed('b'),
        event('RunCompleted'),
      ],
    ],
    ['failed', [started(), ready('a'), begun('a'), failed('a'), event('RunFailed', { failedNodes: ['a'] })]],
    [
      'was cancelled',
      [started(), ...doneA(), ready('b'), event('RunCancelRequested'), cancelled('b'), event('RunCancelled')],
    ],
  ])('finds nothing in a run that %s', (_, events) => expect(find(...events)).toEqual([]));

  it('reports a running one as open', () =>
    expect(find(started(), ready('a'))).toEqual(['open 1 the run has not ended']));

  it.each<[string, RunEvent[], string]>([
    [
      'a task that started before a task that it needs',
      [started(), ready('a'), begun('a'), ready('b')],
      'violation 4 TaskReady of b before a had completed',
    ],
    [
      'a second completion',
      [started(), ...doneA(), completed('a')],
      'violation 5 TaskCompleted of a, which was completed',
    ],
    [
      'an attempt beyond the maximum',
      [started(), ready('a'), begun('a', 3)],
      'violation 3 a was started 3 times, of 2 allowed',
    ],
    [
      'an attempt number that was used',
      [started(), ready('a'), begun('a'), attemptFailed('a'), begun('a')],
      'violation 5 attempt 1 of a follows 1',
    ],
    [
      'a task of another graph',
      [started(), ready('c')],
      'violation 2 TaskReady names c, which the definition does not have',
    ],
    ['a second start', [started(), started()], `violation 2 run ${RUN} was started twice`],
    ['an event before the start', [ready('a')], 'violation 1 TaskReady of a run that was not started'],
    [
      'an end while a task is running',
      [started(), ready('a'), event('RunFailed', { failedNodes: [] })],
      'violation 3 RunFailed while a had not ended',
    ],
    [
      'a completion without all tasks',
      [started(), ...doneA(), event('RunCompleted')],
      'violation 5 RunCompleted without b',
    ],
    [
      'a failure of a completed run',
      [
        started(),
        ...doneA(),
        ready('b'),
        begun('b'),
        completed('b'),
        event('RunFailed', { failedNodes: [] }),
      ],
      'violation 8 RunFailed of a run whose tasks have all completed',
    ],
    [
      'a cancellation without a request',
      [started(), ...doneA(), event('RunCancelled')],
      'violation 5 RunCancelled without a request to cancel',
    ],
    [
      'an event after the end',
      [started(), ready('a'), failed('a'), event('RunFailed', { failedNodes: ['a'] }), begun('a')],
      "violation 5 TaskStarted came after the run's end",
    ],
  ])('reports %s', (_, events, finding) => expect(find(...events)).toContain(finding));

  it('reports an event in the stream of another run', () =>
    expect(find(event('RunStarted', { runId: uuid(801) }))).toEqual([
      `violation 1 RunStarted names run ${uuid(801)}`,
    ]));
});
