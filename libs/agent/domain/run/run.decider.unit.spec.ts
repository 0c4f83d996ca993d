import { describe, expect, it } from '@jest/globals';
import { fold } from '@antiphon/kernel';
import { specFor } from '@antiphon/testing';
import { runDecider } from './run.decider.js';
import { tasksToDo } from './run-state.js';
import {
  attemptFailed,
  begin,
  cancel,
  cancelAsked,
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
  it('starts with what needs nothing', () => given([]).when(start).then(begun));
  it('starts once', () => given(begun).when(start).thenRejects('RUN.STARTED'));

  it('makes ready all that waited for a task alone', () =>
    given([...begun, taskStarted('top')])
      .when(complete('top'))
      .then([completed('top'), ready('left'), ready('right')]));

  it('makes ready what needs several only after the last of them', () => {
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

  it('has to do what is ready or begun, and nothing once it has ended', () => {
    const state = fold(runDecider.evolve, runDecider.initialState(), [...forked, taskStarted('left')]);
    expect(tasksToDo(state)).toEqual(['left', 'right']);
    const over = [...begun, cancelAsked(), taskCancelled('top'), runCancelled()];
    expect(tasksToDo(fold(runDecider.evolve, runDecider.initialState(), over))).toEqual([]);
  });
});

describe('a task', () => {
  it('is begun once, whoever says so again', () => {
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

  it('is tried again after a failure that may pass, as often as it may', () => {
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

  it('fails at once where trying again changes nothing, begun or not', () => {
    given([...begun, taskStarted('top')])
      .when(fail('top', false))
      .then([failed('top'), runFailed('top')]);
    given(begun)
      .when(fail('top', false))
      .then([failed('top'), runFailed('top')]);
  });

  it('that fails lets other branches end first', () => {
    const both = [...forked, taskStarted('left'), taskStarted('right')];
    given(both)
      .when(fail('left', false))
      .then([failed('left')]);
    given([...both, failed('left')])
      .when(complete('right'))
      .then([completed('right'), runFailed('left')]);
  });
});

describe('cancelling', () => {
  it('ends a run at once that waits for no turn', () =>
    given(begun)
      .when(cancel)
      .then([cancelAsked(), taskCancelled('top'), runCancelled()]));

  it('waits for the turns at work', () => {
    const atWork = [...forked, taskStarted('left')];
    given(atWork)
      .when(cancel)
      .then([cancelAsked(), taskCancelled('right')]);
    const asked = [...atWork, cancelAsked(), taskCancelled('right')];
    given(asked)
      .when(cancelTask('left'))
      .then([taskCancelled('left'), runCancelled()]);
    given(asked)
      .when(complete('left'))
      .then([completed('left'), runCancelled()]);
    given(asked).when(begin('right')).thenNothing();
  });

  it('comes too late for the last task', () =>
    given([...begun, cancelAsked(), taskCancelled('top'), runCancelled()])
      .when(cancel)
      .thenNothing());
});
