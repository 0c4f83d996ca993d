import { textCause } from '@antiphon/contracts/causes';
import { describe, expect, it } from '@jest/globals';
import { TaskEvent } from '@antiphon/contracts/agent';
import { fold, isAppError } from '@antiphon/kernel';
import { specFor } from '@antiphon/testing';
import fc from 'fast-check';
import { DEADLINE_ACTOR, MAX_LOSSES, failureDelayMs, lossDelayMs, taskDecider } from './task.decider.js';
import { isOpenTask } from './task-fold.js';
import type { TaskFold } from './task-fold.js';
import {
  LATER,
  NOW,
  abandon,
  assign,
  assigned,
  begin,
  begun,
  cancel,
  cancelRequested,
  ended,
  expire,
  finish,
  lose,
  queue,
  queued,
  requeued,
} from './task.examples.js';

const given = specFor(taskDecider);
const running = [queued(), assigned(), begun()];
const external = { executor: 'external' as const };
const claimed = [queued(external), assigned(1, null), begun(1, false)];
const OTHER = '00000000-0000-4000-8000-000000000002';
const strike = { code: 'PROVIDER.ERROR', cause: textCause('no answer') };

describe('a task', () => {
  it('waits once it is accepted, and is accepted once', () => {
    given([]).when(queue()).then([queued()]);
    given([queued()]).when(queue()).thenRejects('TASK.EXISTS');
  });

  it('records the ended task that it tries again', () =>
    given([])
      .when(queue({ retryOf: OTHER }))
      .then([queued({ retryOf: OTHER })]));

  it('is assigned, begins and completes', () => {
    given([queued()]).when(assign()).then([assigned()]);
    given([queued(), assigned()]).when(begin()).then([begun()]);
    given(running)
      .when(finish('completed', { text: 'done' }))
      .then([ended('completed', { text: 'done' })]);
  });

  it('is claimed by one worker at a time, at the next epoch', () => {
    given([queued(), assigned()]).when(assign(2)).thenRejects('TASK.CLAIMED');
    given([queued()]).when(assign(2)).thenRejects('TASK.CLAIMED');
    given([queued(), assigned(), requeued(1, 'lost')])
      .when(assign(2))
      .then([assigned(2)]);
  });

  it('begins in its current claim only', () => {
    given([queued(), assigned(), requeued(1, 'lost'), assigned(2)])
      .when(begin(1))
      .then([]);
    given(running).when(begin()).then([]);
  });
});

describe('a failed attempt', () => {
  it('returns the task to the queue with its reason', () =>
    given(running)
      .when(finish('failed', strike))
      .then([requeued(1, 'failed', { ...strike, notBefore: LATER })]));

  it('delays the next claim', () => {
    const waiting = [...running, requeued(1, 'failed', { ...strike, notBefore: LATER })];
    given(waiting).when(assign(2)).thenRejects('TASK.CLAIMED');
    given(waiting)
      .when(assign(2, 'main', LATER))
      .then([assigned(2, 'main', LATER)]);
  });

  it('fails the task with all reasons at the third strike', () =>
    given([
      ...running,
      requeued(1, 'failed', { cause: textCause('one') }),
      assigned(2),
      requeued(2, 'failed', { cause: textCause('two') }),
      assigned(3),
      begun(3),
    ])
      .when(finish('failed', { epoch: 3, code: 'PROVIDER.ERROR', cause: textCause('three') }))
      .then([
        ended('failed', {
          epoch: 3,
          code: 'PROVIDER.ERROR',
          strikes: ['one', 'two', 'three'].map(textCause),
        }),
      ]));

  it('fails the task at once where a retry cannot help', () =>
    given([queued(), assigned()])
      .when(finish('failed', { code: 'AGENT.NOT_FOUND', cause: textCause('no agent'), isRetryable: false }))
      .then([
        ended('failed', { code: 'AGENT.NOT_FOUND', strikes: [textCause('no agent')], hasTurn: false }),
      ]));

  it('doubles its delay', () => {
    const after = (events: TaskEvent[]): TaskFold =>
      fold(taskDecider.evolve, taskDecider.initialState(), events);
    expect(failureDelayMs(after(running))).toBe(1_000);
    expect(failureDelayMs(after([...running, requeued(1, 'failed', strike)]))).toBe(2_000);
  });
});

describe('a lost worker', () => {
  it('costs no strike', () =>
    given(running)
      .when(lose())
      .then([requeued(1, 'lost', { code: 'TASK.LEASE_EXPIRED' })]));

  it('cannot end the task any more, and its result stays as evidence once', () => {
    const moved = [...running, requeued(1, 'lost'), assigned(2)];
    const refused: TaskEvent = {
      type: 'TaskResultRefused',
      schemaVersion: 1,
      data: {
        taskId: queue().type === 'QueueTask' ? '00000000-0000-4000-8000-000000000001' : '',
        epoch: 1,
        worker: 'agent/main',
        result: { status: 'completed', text: 'late', sessionId: null, turnId: null, code: null },
        at: NOW,
      },
    };
    given(moved)
      .when(finish('completed', { text: 'late' }))
      .then([refused]);
    given([...moved, refused])
      .when(finish('completed', { text: 'late' }))
      .then([]);
  });

  it('fails the task after many losses in a row', () => {
    const losses = Array.from({ length: MAX_LOSSES - 1 }, (_, index) => [
      assigned(index + 1),
      requeued(index + 1, 'lost'),
    ]).flat();
    const before = [queued(), ...losses];
    expect(lossDelayMs(fold(taskDecider.evolve, taskDecider.initialState(), before))).toBe(60_000);
    given([...before, assigned(MAX_LOSSES)])
      .when(lose(MAX_LOSSES))
      .then([ended('failed', { epoch: MAX_LOSSES, code: 'TASK.WORKER_LOST', hasTurn: false })]);
  });

  it('returns its task without a strike when it releases it', () =>
    given(running)
      .when(finish('released'))
      .then([requeued(1, 'released')]));
});

describe('a cancel', () => {
  it('ends a waiting task, and one of an external worker, at once', () => {
    given([queued()])
      .when(cancel())
      .then([cancelRequested(), ended('cancelled', { epoch: null, hasTurn: false })]);
    given(claimed)
      .when(cancel())
      .then([cancelRequested(), ended('cancelled', { hasTurn: false })]);
  });

  it('waits for the end of an agent’s turn, so that a finished result stays', () => {
    given(running).when(cancel()).then([cancelRequested()]);
    const asked = [...running, cancelRequested()];
    given(asked).when(cancel()).then([]);
    given(asked)
      .when(finish('completed', { text: 'done' }))
      .then([ended('completed', { text: 'done' })]);
    given(asked)
      .when(finish('cancelled'))
      .then([ended('cancelled')]);
    given(asked)
      .when(lose())
      .then([ended('cancelled')]);
    given(asked)
      .when(finish('failed', strike))
      .then([ended('cancelled')]);
  });

  it('changes nothing after the end', () =>
    given([...running, ended('completed')])
      .when(cancel())
      .then([]));
});

describe('a deadline', () => {
  const due = { deadline: LATER };
  const expired = cancelRequested(DEADLINE_ACTOR, { kind: 'deadline_reached' });
  const at = (event: TaskEvent, time: string): TaskEvent =>
    ({ ...event, data: { ...event.data, at: time } }) as TaskEvent;

  it('fails a waiting task, not before its time', () => {
    given([queued(due)])
      .when(expire())
      .then([]);
    given([queued(due)])
      .when(expire(LATER))
      .then([
        at(expired, LATER),
        at(ended('failed', { epoch: null, code: 'TASK.DEADLINE_PASSED', hasTurn: false }), LATER),
      ]);
  });

  it('stops the turn of a running task, which then fails', () => {
    given([queued(due), assigned(), begun()])
      .when(expire(LATER))
      .then([at(expired, LATER)]);
    given([queued(due), assigned(), begun(), expired])
      .when(finish('cancelled'))
      .then([ended('failed', { code: 'TASK.DEADLINE_PASSED' })]);
  });
});

describe('a task that no agent can do', () => {
  it('fails with its reason', () =>
    given([queued()])
      .when(abandon)
      .then([
        ended('failed', {
          epoch: null,
          code: 'AGENT.TERMINATED',
          strikes: [{ kind: 'agent_terminated', agentId: 'main' }],
          hasTurn: false,
        }),
      ]));
});

describe('any interleaving of workers, cancels and deadlines', () => {
  const epoch = fc.integer({ min: 1, max: 6 });
  const command = fc.oneof(
    epoch.map((n) => assign(n)),
    epoch.map((n) => begin(n)),
    fc
      .tuple(epoch, fc.constantFrom('completed', 'failed', 'released', 'cancelled' as const))
      .map(([n, outcome]) => finish(outcome, { epoch: n, notBefore: NOW })),
    epoch.map((n) => lose(n)),
    fc.constant(cancel()),
    fc.constant(abandon),
    fc.constantFrom(expire(), expire(LATER)),
  );

  it('ends a task at most once, from its current claim, with epochs in order', () =>
    fc.assert(
      fc.property(fc.boolean(), fc.array(command, { maxLength: 40 }), (isExternal, commands) => {
        const events: TaskEvent[] = [queued({ deadline: LATER, ...(isExternal ? external : {}) })];
        let state = fold(taskDecider.evolve, taskDecider.initialState(), events);
        for (const next of commands) {
          const before = state;
          let decided: TaskEvent[] = [];
          try {
            decided = taskDecider.decide(next, state);
          } catch (error) {
            expect(isAppError(error)).toBe(true);
          }
          state = fold(taskDecider.evolve, state, decided);
          events.push(...decided);
          if (!isOpenTask(before))
            expect(decided.filter(({ type }) => type !== 'TaskResultRefused')).toEqual([]);
        }
        for (const event of events) expect(TaskEvent.safeParse(event).success).toBe(true);
        const claims = events.flatMap((event) => (event.type === 'TaskAssigned' ? [event.data.epoch] : []));
        expect(claims).toEqual(claims.map((_, index) => index + 1));
        const ends = events.flatMap((event) => (event.type === 'TaskEnded' ? [event.data] : []));
        expect(ends.length).toBe(isOpenTask(state) ? 0 : 1);
        if (ends[0]?.epoch) expect(ends[0].epoch).toBe(claims.at(-1));
        const failures = events.filter(
          (event) => event.type === 'TaskRequeued' && event.data.reason === 'failed',
        );
        expect(failures.length).toBeLessThan(3);
      }),
      { numRuns: 2_000 },
    ));
});
