import type { RouteReply, RouteRequest } from '@antiphon/client';
import { useEffect, useState } from 'react';
import { PageHead } from '../../app/page-head.js';
import { hasSingleKeys, isTyping } from '../../app/keys.js';
import { isAbout } from '../../data/event-pages.js';
import { client } from '../../data/gateway.js';
import { keepPosition, navigate, setFilters, setParams, useParam } from '../../data/router.js';
import { useList } from '../../data/use-list.js';
import { useRead, type Read } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { ConfirmDialog } from '../../ui/confirm-dialog.js';
import { CopyRecord } from '../../ui/copy-record.js';
import { countOf, formatNumber } from '../../ui/format.js';
import { TypedFilter } from '../../ui/typed-filter.js';
import { Empty, Loading, numberColumn, Panel, ProblemBox, Table } from '../../ui/ui.js';
import { ShowMore } from '../show-more.js';
import { CreateDialog } from './create-dialog.js';
import { pageOfTask, TaskRow, type Task } from './task-row.js';
import { countOfTab, TABS, type Counts, type TaskTab } from './task-tabs.js';
import pages from '../pages.module.css';
import css from './tasks.module.css';

const QUESTION = 'What is queued, who has it, and what is stuck?';
/** Agents and turns change why a task waits. */
const changesTasks = isAbout('task', 'run', 'agent', 'session');

type Query = NonNullable<RouteRequest<'listTasks'>['query']>;

/** Returns the filters of the address. Nodes of runs are left out unless a person wants them. */
const useFilter = (): Query => {
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

const Filters = ({ filter }: { readonly filter: Query }) => (
  <div className={pages.filters}>
    <TypedFilter name="q" label="Title" value={filter.q ?? ''} />
    <TypedFilter name="capability" label="Capability" value={filter.capability ?? ''} />
    <TypedFilter name="agent" label="Agent" value={filter.agent ?? ''} />
    <TypedFilter name="project" label="Project" value={filter.project ?? ''} />
    <label>
      Nodes of runs
      <select
        value={filter.kind === 'task' ? '' : '1'}
        onChange={(event) => setFilters({ nodes: event.target.value })}
      >
        <option value="">left out</option>
        <option value="1">shown</option>
      </select>
    </label>
  </div>
);

const Tabs = ({ current, counts }: { readonly current: TaskTab; readonly counts: Counts | undefined }) => (
  <nav aria-label="States of tasks" className={css.tabs}>
    {TABS.map((tab) => (
      <button
        key={tab.id}
        type="button"
        aria-current={tab.id === current.id ? 'true' : undefined}
        onClick={() => setFilters({ tab: tab.id })}
      >
        {tab.title}
        {counts && <span className={css.count}>{formatNumber(countOfTab(tab, counts))}</span>}
      </button>
    ))}
  </nav>
);

/** Returns true for a key without Ctrl, Alt or a dialog, while no person types. */
const isListKey = (event: globalThis.KeyboardEvent): boolean => {
  const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.defaultPrevented;
  const isFree = hasSingleKeys.get() && !isTyping(event.target);
  return isPlain && isFree && !document.querySelector('dialog[open]');
};

/** Keys of the list: `j` and `k` move, `x` chooses, Enter opens. */
const useListKeys = (tasks: readonly Task[], choose: (task: Task) => void) => {
  const [current, setCurrent] = useState('');
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent): void => {
      if (!isListKey(event)) return;
      const index = tasks.findIndex(({ id }) => id === current);
      const task = tasks[index];
      const step = { j: 1, k: -1 }[event.key];
      const next =
        step === undefined ? undefined : tasks[Math.min(tasks.length - 1, Math.max(0, index + step))];
      if (next) {
        setCurrent(next.id);
        document.querySelector(`[data-task="${CSS.escape(next.id)}"]`)?.scrollIntoView({ block: 'nearest' });
      } else if (event.key === 'x' && task) choose(task);
      else if (event.key === 'Enter' && task && event.target === document.body)
        navigate(keepPosition(pageOfTask(task)));
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [tasks, current, choose]);
  return current;
};

const canCancel = ({ kind, endedAt }: Task): boolean => kind === 'task' && endedAt === null;

interface CancelProps {
  readonly tasks: readonly Task[];
  readonly onClose: (isDone: boolean) => void;
}

const CancelDialog = ({ tasks, onClose }: CancelProps) => (
  <ConfirmDialog
    title={`Cancel ${countOf(tasks.length, 'task')}?`}
    action="Cancel them"
    permission="runs:write"
    onConfirm={() =>
      Promise.all(
        tasks.map(({ id }) => client.http.cancelTask({ params: { id }, body: { action: 'cancel' } })),
      )
    }
    onClose={onClose}
  >
    <p>The turns that work on them are cancelled too.</p>
  </ConfirmDialog>
);

const COLUMNS = [
  '',
  'Task',
  'State',
  numberColumn('Priority'),
  'Needs',
  'Agent',
  'Since',
  numberColumn('Strikes'),
];

const Rows = ({ tasks }: { readonly tasks: readonly Task[] }) => {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [isCancelling, setCancelling] = useState(false);
  const toggle = ({ id }: Task): void =>
    setChosen((before) =>
      before.has(id) ? new Set([...before].filter((other) => other !== id)) : new Set([...before, id]),
    );
  const choose = (task: Task): void => {
    if (canCancel(task)) toggle(task);
  };
  const current = useListKeys(tasks, choose);
  const open = tasks.filter((task) => chosen.has(task.id) && canCancel(task));
  return (
    <>
      {open.length > 0 && (
        <div className={css.chosen}>
          <span>{countOf(open.length, 'task')} chosen</span>
          <ActButton permission="runs:write" look="danger" onClick={() => setCancelling(true)}>
            Cancel the chosen ones
          </ActButton>
        </div>
      )}
      <Table label="Tasks" columns={COLUMNS}>
        {tasks.map((task) => (
          <TaskRow
            key={task.id}
            task={task}
            isCurrent={task.id === current}
            isChosen={chosen.has(task.id)}
            choose={canCancel(task) ? () => toggle(task) : null}
          />
        ))}
      </Table>
      {isCancelling && (
        <CancelDialog
          tasks={open}
          onClose={(isDone) => {
            setCancelling(false);
            if (isDone) setChosen(new Set());
          }}
        />
      )}
    </>
  );
};

/** Reads the tasks of a tab. Two states of one tab are two lists, which are shown together. */
const useTasks = (tab: TaskTab, filter: Query) => {
  const [first, second] = tab.states;
  const options = { changesOn: changesTasks };
  const list = useList(
    'listTasks',
    { query: { ...filter, limit: 100, ...(first && { state: first }) } },
    options,
  );
  const other = useList(
    'listTasks',
    { query: { ...filter, limit: 100, ...(second && { state: second }) } },
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

const emptyText = (filter: Query): string =>
  Object.keys(filter).length > 1 ? 'Change the filters.' : 'Create one, or let an agent create it.';

export const TaskList = () => {
  const wanted = useParam('tab');
  const tab = TABS.find(({ id }) => id === wanted) ?? (TABS[0] as TaskTab);
  const filter = useFilter();
  const isCreating = useParam('create') !== '';
  const counted: Read<RouteReply<'listTasks'>> = useRead(
    'listTasks',
    { query: { ...filter, limit: 1, counts: 'true' } },
    { changesOn: changesTasks },
  );
  const { list, tasks } = useTasks(tab, filter);
  const { problem, data, refresh } = list;
  return (
    <>
      <PageHead
        title="Tasks"
        question={QUESTION}
        actions={
          <>
            <CopyRecord noun="list" json="/tasks" command="antiphon task list" />
            <ActButton
              permission="runs:write"
              look="primary"
              icon="plus"
              onClick={() => setParams({ create: '1' })}
            >
              Create a task
            </ActButton>
          </>
        }
      />
      <Tabs current={tab} counts={counted.data?.counts} />
      <Filters filter={filter} />
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      <Panel title={tab.title === 'All' ? 'All tasks, newest first' : `${tab.title} tasks, newest first`}>
        {!data && !problem && <Loading what="tasks" />}
        {data && tasks.length === 0 && (
          <Empty title="No task is here">
            <p>{emptyText(filter)}</p>
          </Empty>
        )}
        {tasks.length > 0 && <Rows tasks={tasks} />}
        <ShowMore list={list} what="tasks" count={tasks.length} />
      </Panel>
      {isCreating && <CreateDialog onClose={() => setParams({ create: null, from: null })} />}
    </>
  );
};
