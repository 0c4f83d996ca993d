import { describe, expect, it } from '@jest/globals';
import type { AgentEvent, AgentMessageEvent, AgentTreeEvent, TaskEvent } from '@antiphon/contracts/agent';
import { findingsOf, TIME, uuid } from '../audit-examples.spec.js';
import {
  admitted,
  agentEvent,
  fact,
  left,
  message,
  placeIn,
  spawned,
  terminated,
  treeEvent,
} from './agent-examples.spec.js';
import { inboxesAreReadForward } from './inbox-reads.js';
import { agentsFollowTheirLifecycle, treesStayWithinLimits } from './lifecycle.js';
import { tasksEndOnce } from './task-claims.js';

const inOne = <E>(stream: string, events: readonly E[]) => placeIn(events.map((event) => [stream, event]));

describe('agents-follow-their-lifecycle', () => {
  const find = (...events: AgentEvent[]) =>
    findingsOf(agentsFollowTheirLifecycle, inOne(`agent-${uuid(1)}`, events));
  const life = () => [spawned('a'), agentEvent('AgentReady', 'a')];

  it('finds nothing in a whole life', () =>
    expect(
      find(
        ...life(),
        agentEvent('AgentPaused', 'a'),
        agentEvent('AgentUnresponsive', 'a'),
        agentEvent('AgentResponsive', 'a'),
        agentEvent('AgentUnresponsive', 'a'),
        agentEvent('AgentResumed', 'a'),
        agentEvent('AgentUnresponsive', 'a'),
        agentEvent('AgentFailed', 'a'),
        agentEvent('AgentResumed', 'a'),
        agentEvent('AgentBlocked', 'a'),
        terminated('a'),
      ),
    ).toEqual([]));

  it.each<[string, AgentEvent[], string]>([
    ['a second spawn', [...life(), spawned('a')], 'violation 3 AgentSpawned of agent a, which was ready'],
    [
      'an event without a spawn',
      [agentEvent('AgentReady', 'a')],
      'violation 1 AgentReady of agent a, which was none',
    ],
    [
      'a pause of an agent that is not ready',
      [spawned('a'), agentEvent('AgentPaused', 'a')],
      'violation 2 AgentPaused of agent a, which was spawning',
    ],
    [
      'a resume of a working agent',
      [...life(), agentEvent('AgentResumed', 'a')],
      'violation 3 AgentResumed of agent a, which was ready',
    ],
    [
      'an event after the end',
      [...life(), terminated('a'), agentEvent('AgentResumed', 'a')],
      'violation 4 AgentResumed of agent a, which was terminated',
    ],
    [
      'a second end',
      [...life(), terminated('a'), terminated('a')],
      'violation 4 AgentTerminated of agent a, which was terminated',
    ],
    [
      'an event of another agent',
      [...life(), agentEvent('AgentPaused', 'b')],
      'violation 3 the events of agent a name agent b',
    ],
    [
      'a heartbeat that was not lost',
      [...life(), agentEvent('AgentResponsive', 'a')],
      'violation 3 AgentResponsive came twice in a row',
    ],
  ])('reports %s', (_, events, finding) => expect(find(...events)).toContain(finding));
});

describe('trees-stay-within-limits', () => {
  const find = (...events: AgentTreeEvent[]) =>
    findingsOf(treesStayWithinLimits, inOne(`agent-tree-${uuid(1)}`, events));
  const opened = (limits: object = {}) =>
    treeEvent('TreeOpened', { limits: { depth: 2, children: 2, size: 4, ...limits } });
  const tree = () => [opened(), admitted('root', null), admitted('a'), admitted('b')];
  const queued = (agentId: string) =>
    treeEvent('TreeMemberQueued', { agentId, parentId: 'root', depth: 1, limit: 'children' });

  it('finds nothing in a tree whose places are used again', () =>
    expect(find(...tree(), queued('c'), left('a'), admitted('c'), queued('d'), left('d'), left('c'))).toEqual(
      [],
    ));

  it.each<[string, AgentTreeEvent[], string]>([
    [
      'more children than allowed',
      [...tree(), admitted('c')],
      'violation 5 the tree has children 3, of 2 allowed',
    ],
    [
      'more agents than allowed',
      [...tree(), admitted('c', 'a', 2), admitted('d', 'a', 2)],
      'violation 6 the tree has size 5, of 4 allowed',
    ],
    [
      'a child below the allowed depth',
      [...tree(), admitted('c', 'a', 2), left('b'), admitted('d', 'c', 3)],
      'violation 7 the tree has depth 3, of 2 allowed',
    ],
    [
      'a depth that is not its parent’s plus one',
      [...tree(), admitted('c', 'a', 1)],
      'violation 5 agent c has depth 1, its parent 1',
    ],
    [
      'a parent without a place',
      [...tree(), left('a'), admitted('c', 'a', 2)],
      'violation 6 the parent a of c has no place',
    ],
    ['a second place', [...tree(), admitted('a')], 'violation 5 agent a was admitted a second time'],
    [
      'an agent that comes back',
      [...tree(), left('a'), admitted('a')],
      'violation 6 agent a was admitted a second time',
    ],
    [
      'an agent that leaves twice',
      [...tree(), left('a'), left('a')],
      'violation 6 agent a left the tree without a place in it',
    ],
    [
      'a member before the tree',
      [admitted('root', null)],
      'violation 1 TreeMemberAdmitted came before TreeOpened',
    ],
    ['a tree that is opened twice', [opened(), opened()], 'violation 2 the tree was opened twice'],
    [
      'a second root',
      [opened(), admitted('b', null)],
      'violation 2 agent b has no parent, and is not the root',
    ],
    [
      'a member of another tree',
      [...tree(), treeEvent('TreeMemberLeft', { rootId: 'other', agentId: 'a' })],
      'violation 5 TreeMemberLeft names the tree of other',
    ],
    [
      'an agent that waits twice',
      [...tree(), queued('c'), queued('c')],
      'violation 6 agent c was queued a second time',
    ],
  ])('reports %s', (_, events, finding) => expect(find(...events)).toContain(finding));
});

describe('tasks-end-once', () => {
  const TASK = uuid(700);
  const find = (...events: TaskEvent[]) => findingsOf(tasksEndOnce, inOne(`task-${TASK}`, events));
  const task = (type: TaskEvent['type'], data: object = {}) =>
    fact<TaskEvent>(type, { taskId: TASK, at: TIME, ...data });
  const queued = () => task('TaskQueued', { retry: { strikes: 2, backoffMs: 0 }, parentAgentId: null });
  const claim = (epoch: number) => [task('TaskAssigned', { epoch }), task('TaskBegun', { epoch })];
  const requeued = (epoch: number, reason = 'failed') => task('TaskRequeued', { epoch, reason });
  const ended = (epoch: number | null, status = 'completed', strikes: string[] = []) =>
    task('TaskEnded', { epoch, status, strikes });
  const refused = (epoch: number) => task('TaskResultRefused', { epoch });

  it('finds nothing in a task that was lost, failed once and completed', () =>
    expect(
      find(
        queued(),
        ...claim(1),
        requeued(1, 'lost'),
        ...claim(2),
        refused(1),
        requeued(2),
        ...claim(3),
        ended(3, 'completed', ['x']),
        refused(2),
      ),
    ).toEqual([]));

  it('reports a task that waits as open', () =>
    expect(find(queued())).toEqual(['open 1 the task has not ended']));

  it.each<[string, TaskEvent[], string]>([
    [
      'a second end',
      [queued(), ...claim(1), ended(1), ended(1)],
      'violation 5 TaskEnded came after the end of the task',
    ],
    [
      'an end by an older claim',
      [queued(), ...claim(1), requeued(1, 'lost'), ...claim(2), ended(1)],
      'violation 7 TaskEnded (completed) by claim 1; the newest is 2',
    ],
    [
      'a second claim next to an open one',
      [queued(), ...claim(1), task('TaskAssigned', { epoch: 2 })],
      'violation 4 claim 2 began while another was open',
    ],
    [
      'a claim whose epoch was used',
      [queued(), ...claim(1), requeued(1), ...claim(1)],
      'violation 5 claim 1 follows 1',
    ],
    [
      'more strikes than allowed',
      [queued(), ...claim(1), requeued(1), ...claim(2), requeued(2)],
      'violation 7 the task has 3 strikes, of 2 allowed',
    ],
    [
      'an end with strikes that did not happen',
      [queued(), ...claim(1), ended(1, 'failed', ['x', 'y'])],
      'violation 4 the end names 2 strikes, its events 0',
    ],
    [
      'work that began twice',
      [queued(), ...claim(1), task('TaskBegun', { epoch: 1 })],
      'violation 4 work of claim 1 began twice',
    ],
    [
      'a completion without a claim',
      [queued(), ended(null)],
      'violation 2 the task was completed without a claim',
    ],
    [
      'a cancellation without a request',
      [queued(), ended(null, 'cancelled')],
      'violation 2 the task was cancelled without a request',
    ],
    [
      'a refused result of the newest claim',
      [queued(), ...claim(1), refused(1)],
      'violation 4 the result of claim 1 was refused; it is not older than 1',
    ],
    [
      'an event before the task',
      [ended(null, 'failed')],
      'violation 1 TaskEnded of a task that was not queued',
    ],
    ['a task that was queued twice', [queued(), queued()], `violation 2 task ${TASK} was queued twice`],
  ])('reports %s', (_, events, finding) => expect(find(...events)).toContain(finding));
});

describe('inboxes-are-read-forward', () => {
  const find = (events: AgentMessageEvent[], stream = `agent-inbox-${uuid(1)}`) =>
    findingsOf(inboxesAreReadForward, inOne(stream, events));
  const read = (upTo: number, agentId = 'a') =>
    fact<AgentMessageEvent>('InboxRead', { agentId, upTo, count: 1, turnId: uuid(9), sessionId: uuid(8) });

  it('finds nothing in an inbox whose cursor grows', () =>
    expect(find([message(1, 'a'), read(1), message(2, 'a'), read(3)])).toEqual([]));

  it.each<[string, AgentMessageEvent[], string]>([
    [
      'a cursor that goes back',
      [message(1, 'a'), message(2, 'a'), read(2), read(1)],
      'violation 4 the inbox was read up to 1 after 2',
    ],
    [
      'a message that was read twice',
      [message(1, 'a'), read(1), read(1)],
      'violation 3 the inbox was read up to 1 after 1',
    ],
    [
      'a message of the future',
      [message(1, 'a'), read(2)],
      'violation 2 the inbox was read up to 2, which is later',
    ],
    [
      'a message of another agent',
      [message(1, 'a'), message(2, 'b')],
      'violation 2 the inbox of agent a names agent b',
    ],
    [
      'a message that was sent twice',
      [message(1, 'a'), message(1, 'a')],
      `violation 2 message ${uuid(1)} was sent twice`,
    ],
    [
      'a broadcast in an inbox',
      [message(1, null)],
      `violation 1 message ${uuid(1)} to everyone is in the wrong stream`,
    ],
  ])('reports %s', (_, events, finding) => expect(find(events)).toContain(finding));

  it('reports a direct message in the stream of a topic', () =>
    expect(find([message(1, 'a')], `agent-topic-${uuid(1)}`)).toEqual([
      `violation 1 message ${uuid(1)} to agent is in the wrong stream`,
    ]));
});
