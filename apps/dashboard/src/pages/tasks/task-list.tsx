import type { RouteReply } from '@antiphon/client';
import { useState } from 'react';
import { PageHead } from '../../app/page-head.js';
import { client } from '../../data/gateway.js';
import { setFilters, setParams, useParam } from '../../data/router.js';
import { useRead, type Read } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { ConfirmDialog } from '../../ui/confirm-dialog.js';
import { CopyRecord } from '../../ui/copy-record.js';
import { countOf, formatNumber } from '../../ui/format.js';
import { TypedFilter } from '../../ui/typed-filter.js';
import { Button, Empty, Loading, Panel, ProblemBox, Table } from '../../ui/ui.js';
import { ShowMore } from '../show-more.js';
import { CreateDialog } from './create-dialog.js';
import { useListKeys } from './list-keys.js';
import { TaskBoard } from './task-board.js';
import type { TaskNeed } from './task-needs.js';
import { CHOSEN_COLUMNS, TaskRow, type Task } from './task-row.js';
import { ALL, countOfTab, NEEDS, TABS, type Counts, type TaskTab } from './task-tabs.js';
import { changesTasks, useNeedyTasks, useTaskFilter, useTasks, type TaskFilter } from './use-tasks.js';
import pages from '../pages.module.css';
import css from './tasks.module.css';

const QUESTION = 'What is queued, who has it, and what is stuck?';
const Filters = ({ filter }: { readonly filter: TaskFilter }) => (
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

interface TabsProps {
  /** Null while the board shows all states. */
  readonly current: TaskTab | null;
  readonly counts: Counts | undefined;
  /** Number of failed tasks that no other task tries again. */
  readonly failed: number;
  /** Number of tasks that wait for a person; null while it is not known. */
  readonly waiting: number | null;
}

const countText = (tab: TaskTab, { counts, failed, waiting }: TabsProps): string | null => {
  if (!counts) return null;
  if (tab !== NEEDS) return formatNumber(countOfTab(tab, counts));
  return waiting === null ? null : formatNumber(waiting + failed);
};

const Tabs = (props: TabsProps) => (
  <nav aria-label="States of tasks" className={css.tabs}>
    {TABS.map((tab) => (
      <button
        key={tab.id}
        type="button"
        aria-current={tab === props.current ? 'true' : undefined}
        onClick={() => setFilters({ tab: tab.id, view: null })}
      >
        {tab.title}
        {countText(tab, props) !== null && <span className={css.count}>{countText(tab, props)}</span>}
      </button>
    ))}
  </nav>
);

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

interface RowsProps {
  readonly tasks: readonly Task[];
  /** Reasons for which tasks need a person, by their ids. */
  readonly needs?: ReadonlyMap<string, TaskNeed>;
}

const Rows = ({ tasks, needs }: RowsProps) => {
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
      <Table label="Tasks" columns={CHOSEN_COLUMNS}>
        {tasks.map((task) => {
          const need = needs?.get(task.id);
          return (
            <TaskRow
              key={task.id}
              task={task}
              isCurrent={task.id === current}
              choice={canCancel(task) ? { isChosen: chosen.has(task.id), toggle: () => toggle(task) } : null}
              {...(need && { need })}
            />
          );
        })}
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

const emptyText = (filter: TaskFilter): string =>
  Object.keys(filter).length > 1 ? 'Change the filters.' : 'Create one, or let an agent create it.';

interface TabProps {
  readonly tab: TaskTab;
  readonly filter: TaskFilter;
}

/** Tasks of the states of a tab. */
const StatePanel = ({ tab, filter }: TabProps) => {
  const { list, tasks } = useTasks(tab, filter);
  const { problem, data, refresh } = list;
  return (
    <Panel title={tab === ALL ? 'All tasks, newest first' : `${tab.title} tasks, newest first`}>
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      {!data && !problem && <Loading what="tasks" />}
      {data && tasks.length === 0 && (
        <Empty title="No task is here">
          <p>{emptyText(filter)}</p>
        </Empty>
      )}
      {tasks.length > 0 && <Rows tasks={tasks} />}
      <ShowMore list={list} what="tasks" count={tasks.length} />
    </Panel>
  );
};

/** Tasks that need a person, with the reason and a link to the place where it is solved. */
const NeedsPanel = ({ read }: { readonly read: ReturnType<typeof useNeedyTasks> }) => {
  const { needy, failed, isLoading } = read;
  const problem = read.problem ?? failed.problem;
  const isRead = !isLoading && failed.data !== undefined;
  return (
    <Panel title="Tasks that failed, wait for an approval, or have no agent">
      {problem && <ProblemBox problem={problem} retry={failed.refresh} />}
      {!isRead && !problem && <Loading what="tasks" />}
      {isRead && needy.length === 0 && (
        <Empty title="No task needs you">
          <p>Tasks appear here when they fail, wait for an approval, or when no agent can do them.</p>
        </Empty>
      )}
      {needy.length > 0 && (
        <Rows
          tasks={needy.map(({ task }) => task)}
          needs={new Map(needy.map(({ task, need }) => [task.id, need]))}
        />
      )}
      <ShowMore list={failed} what="failed tasks" count={failed.data?.tasks.length ?? 0} />
    </Panel>
  );
};

const ViewSwitch = ({ isBoard }: { readonly isBoard: boolean }) => (
  <div className={css.views} role="group" aria-label="View of tasks">
    <Button icon="events" look="quiet" aria-pressed={!isBoard} onClick={() => setParams({ view: null })}>
      List
    </Button>
    <Button icon="layout" look="quiet" aria-pressed={isBoard} onClick={() => setParams({ view: 'board' })}>
      Board
    </Button>
  </div>
);

export const TaskList = () => {
  const wanted = useParam('tab');
  const tab = TABS.find(({ id }) => id === wanted) ?? ALL;
  const isBoard = useParam('view') === 'board';
  const filter = useTaskFilter();
  const isCreating = useParam('create') !== '';
  const counted: Read<RouteReply<'listTasks'>> = useRead(
    'listTasks',
    { query: { ...filter, limit: 1, counts: 'true' } },
    { changesOn: changesTasks },
  );
  const needs = useNeedyTasks(filter, tab === NEEDS && !isBoard);
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
      <div className={css.bar}>
        <Tabs
          current={isBoard ? null : tab}
          counts={counted.data?.counts}
          failed={counted.data?.failedAndNotRetried ?? 0}
          waiting={needs.isLoading ? null : needs.waiting}
        />
        <ViewSwitch isBoard={isBoard} />
      </div>
      <Filters filter={filter} />
      {counted.problem && <ProblemBox problem={counted.problem} retry={counted.refresh} />}
      {isBoard ? (
        <TaskBoard filter={filter} counts={counted.data?.counts} />
      ) : tab === NEEDS ? (
        <NeedsPanel read={needs} />
      ) : (
        <StatePanel tab={tab} filter={filter} />
      )}
      {isCreating && <CreateDialog onClose={() => setParams({ create: null, from: null })} />}
    </>
  );
};
