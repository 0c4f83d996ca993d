import type { RouteRequest } from '@antiphon/client';
import { useMemo } from 'react';
import { isAbout } from '../../data/event-pages.js';
import { useParam } from '../../data/router.js';
import { useList } from '../../data/use-list.js';
import { useRead } from '../../data/use-read.js';
import { needyTasks } from './task-needs.js';
import type { TaskTab } from './task-tabs.js';

export type TaskFilter = NonNullable<RouteRequest<'listTasks'>['query']>;

/** Agents and turns change why a task waits. */
export const changesTasks = isAbout('task', 'run', 'agent', 'session');
const options = { changesOn: changesTasks };

/** Returns the filters of the address. Nodes of runs are left out unless a person wants them. */
export const useTaskFilter = (): TaskFilter => {
  const [q, capability, agent, project, parent, all] = [
    useParam('q'),
    useParam('capability'),
    useParam('agent'),
    useParam('project'),
    useParam('parent'),
    useParam('nodes'),
  ];
  return {
    ...(q && { q }),
    ...(capability && { capability }),
    ...(agent && { agent }),
    ...(project && { project }),
    ...(parent && { parent }),
    ...(all === '' && { kind: 'task' as const }),
  };
};

/** Reads the tasks of a tab. Two states of one tab are two lists, which are shown together. */
export const useTasks = (tab: TaskTab, filter: TaskFilter, limit = 100) => {
  const [first, second] = tab.states;
  const query = { ...filter, limit };
  const list = useList('listTasks', { query: { ...query, ...(first && { state: first }) } }, options);
  const other = useList(
    'listTasks',
    { query: { ...query, ...(second && { state: second }) } },
    { ...options, isOff: second === undefined },
  );
  const tasks = [...(list.data?.tasks ?? []), ...(second ? (other.data?.tasks ?? []) : [])];
  const byTime = tasks.toSorted((a, b) => b.queuedAt.localeCompare(a.queuedAt));
  return {
    list,
    tasks: second ? byTime : tasks,
    hasMore: list.hasMore || (second !== undefined && other.hasMore),
  };
};

/** Most tasks of each kind that are read to find those that need a person. */
const MOST = 500;

/** Reads the tasks that need a person. Failed ones are only read where they are shown. */
export const useNeedyTasks = (filter: TaskFilter, isShown: boolean) => {
  const limit = MOST;
  const approvals = useRead(
    'listApprovals',
    { query: { status: 'pending', limit: 100 } },
    { changesOn: isAbout('session') },
  );
  const waits = (approvals.data?.approvals.length ?? 0) > 0;
  const queued = useRead('listTasks', { query: { ...filter, limit, state: 'queued' } }, options);
  const running = useRead(
    'listTasks',
    { query: { ...filter, limit, state: 'running' } },
    { ...options, isOff: !waits },
  );
  const failed = useList(
    'listTasks',
    { query: { ...filter, limit: 100, state: 'failed', retried: 'false' } },
    { ...options, isOff: !isShown },
  );
  const needy = useMemo(
    () =>
      needyTasks(
        [...(running.data?.tasks ?? []), ...(queued.data?.tasks ?? []), ...(failed.data?.tasks ?? [])],
        new Map(approvals.data?.approvals.map(({ sessionId, id }) => [sessionId, id])),
      ),
    [running.data, queued.data, failed.data, approvals.data],
  );
  const waiting = needy.filter(({ need }) => need.reason !== 'failed').length;
  return {
    ...{ needy, failed, waiting },
    isLoading: !queued.data || !approvals.data || (waits && !running.data),
    problem: queued.problem ?? approvals.problem ?? running.problem,
  };
};
