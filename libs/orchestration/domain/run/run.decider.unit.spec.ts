import { describe, expect, it } from '@jest/globals';
import { fold } from '@antiphon/kernel';
import { specFor } from '@antiphon/testing';
import { runDecider } from './run.decider.js';
import { openTasks } from './run-state.js';
import {
  attemptFailed,
  begin,
  cancel,
  cancelRequested,
  cancelTask,
  complete,
  completed,
  done,
  fail,
  failed,
  ready,
  runCancelled,
  runCompleted,
  runFailed,
  runStarted,
  start,
  taskCancelled,
  taskStarted,
} from './run.examples.js';

const given = specFor(runDecider);
const begun = [runStarted(), ready('top')];
const forked = [...begun, ...done('top'), ready('left'), ready('right')];

describe('a run', () => {
  it('starts with the tasks that need no other', () => given([]).when(start).then(begun));
  it('rejects a second start', () => given(begun).when(start).thenRejects('RUN.STARTED'));

  it('readies all tasks that needed only the completed one', () =>
    given([...begun, taskStarted('top')])
      .when(complete('top'))
      .then([completed('top'), ready('left'), ready('right')]));

  it('readies a task with several needs after the last of them', () => {
    const one = [...forked, taskStarted('left'), taskStarted('right')];
    given(one)
      .when(complete('left'))
      .then([completed('left')]);
    given([...one, completed('left')])
      .when(complete('right'))
      .then([completed('right'), ready('bottom')]);
  });

  it('completes with its last task', () =>
    given([...forked, ...done('left'), ...done('right'), ready('bottom'), taskStarted('bottom')])
      .when(complete('bottom'))
      .then([completed('bottom'), runCompleted()]));

  it('lists ready and running tasks, and none after its end', () => {
    const state = fold(runDecider.evolve, runDecider.initialState(), [...forked, taskStarted('left')]);
    expect(openTasks(state)).toEqual(['left', 'right']);
    const over = [...begun, cancelRequested(), taskCancelled('top'), runCancelled()];
    expect(openTasks(fold(runDecider.evolve, runDecider.initialState(), over))).toEqual([]);
  });
});

describe('a task', () => {
  it('starts once, also when the command is repeated', () => {
    given(begun)
      .when(begin('top'))
      .then([taskStarted('top')]);
    given([...begun, taskStarted('top')])
      .when(begin('top'))
      .thenNothing();
  });
  it('completes once', () =>
    given([...begun, ...done('top')])
      .when(complete('top'))
      .thenNothing());

  it('is retried after a retryable failure, up to its attempts', () => {
    const first = [...begun, taskStarted('top')];
    given(first)
      .when(fail('top', true))
      .then([attemptFailed('top')]);
    const second = [...first, attemptFailed('top')];
    given(second).when(begin('top', 1)).thenNothing();
    given(second)
      .when(begin('top', 2))
      .then([taskStarted('top', 2)]);
    given([...second, taskStarted('top', 2)])
      .when(fail('top', true))
      .then([failed('top', 2), runFailed('top')]);
  });

  it('fails at once after a permanent failure, started or not', () => {
    given([...begun, taskStarted('top')])
      .when(fail('top', false))
      .then([failed('top'), runFailed('top')]);
    given(begun)
      .when(fail('top', false))
      .then([failed('top'), runFailed('top')]);
  });

  // @shows U48
  it('lets other branches end before its failure fails the run', () => {
    const both = [...forked, taskStarted('left'), taskStarted('right')];
    given(both)
      .when(fail('left', false))
      .then([failed('left')]);
    given([...both, failed('left')])
      .when(complete('right'))
      .then([completed('right'), runFailed('left')]);
  });
});

describe('a cancel', () => {
  it('ends a run without running turns at once', () =>
    given(begun)
      .when(cancel)
      .then([cancelRequested(), taskCancelled('top'), runCancelled()]));

  it('waits for running turns', () => {
    const running = [...forked, taskStarted('left')];
    given(running)
      .when(cancel)
      .then([cancelRequested(), taskCancelled('right')]);
    const requested = [...running, cancelRequested(), taskCancelled('right')];
    given(requested)
      .when(cancelTask('left'))
      .then([taskCancelled('left'), runCancelled()]);
    given(requested)
      .when(complete('left'))
      .then([completed('left'), runCancelled()]);
    given(requested).when(begin('right')).thenNothing();
  });

  it('changes nothing after the end of the run', () =>
    given([...begun, cancelRequested(), taskCancelled('top'), runCancelled()])
      .when(cancel)
      .thenNothing());
});
