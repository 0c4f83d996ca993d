import type { RouteReply } from '@antiphon/client';
import { textOfTaskWait } from '@antiphon/contracts/task-waits';
import { Link } from '../../data/router.js';
import { css as ui, Id, numberColumn, State, Table, Time } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import type { TaskNeed } from './task-needs.js';
import pages from '../pages.module.css';

export type Task = RouteReply<'listTasks'>['tasks'][number];

/** Returns the page of a task. A node of a run has the page of its run. */
export const pageOfTask = ({ id, kind }: Pick<Task, 'id' | 'kind'>): string => {
  const [run = '', node = ''] = id.split('/', 2);
  return kind === 'task' ? `/tasks/${id}` : `/runs/${run}?node=${encodeURIComponent(node)}`;
};

export const Capabilities = ({ names }: { readonly names: readonly string[] }) =>
  names.length === 0 ? (
    <span className={ui.muted}>any agent</span>
  ) : (
    <span className={pages.tags}>
      {names.map((name) => (
        <span key={name} className={pages.tag}>
          {name}
        </span>
      ))}
    </span>
  );

/** The agent of a task, or the reason for which it has none yet. */
export const Holder = ({ task: { agentId, worker, waiting } }: { readonly task: Task }) => (
  <>
    {agentId !== null && <Link to={`/agents/${encodeURIComponent(agentId)}`}>{agentId}</Link>}
    {agentId === null && worker !== null && <VisibleText text={worker} />}
    {waiting && <div>{textOfTaskWait(waiting)}</div>}
    {agentId === null && worker === null && !waiting && <span className={ui.muted}>none</span>}
  </>
);

/** Time since which a task waits or works, or at which it ended. */
export const Since = ({ task }: { readonly task: Task }) => {
  const { queuedAt, endedAt, deadline } = task;
  return (
    <>
      {endedAt === null ? 'queued ' : 'ended '}
      <Time at={endedAt ?? queuedAt} />
      {deadline !== null && endedAt === null && (
        <div className={ui.muted}>
          until <Time at={deadline} isExact />
        </div>
      )}
    </>
  );
};

interface TaskRowProps {
  readonly task: Task;
  readonly isCurrent?: boolean;
  /** Absent in a table whose rows are not chosen. Null for a task that cannot be chosen. */
  readonly choice?: { readonly isChosen: boolean; readonly toggle: () => void } | null;
  readonly need?: TaskNeed;
}

export const TaskRow = ({ task, isCurrent = false, choice, need }: TaskRowProps) => (
  <tr aria-current={isCurrent} data-task={task.id}>
    {choice !== undefined && (
      <td>
        {choice && (
          <input
            type="checkbox"
            aria-label={`Choose ${task.title}`}
            checked={choice.isChosen}
            onChange={choice.toggle}
          />
        )}
      </td>
    )}
    <td className={pages.contentCell}>
      <Link to={pageOfTask(task)} className={pages.name}>
        <VisibleText text={task.title} />
      </Link>
      <div className={ui.muted}>
        {task.kind === 'run_node' ? 'node of a run' : <Id id={task.id} />}
        {task.project && (
          <>
            {' · '}
            <VisibleText text={task.project} />
          </>
        )}
      </div>
    </td>
    <td>
      <State of={need?.reason === 'approval' ? 'pending' : task.state}>
        {need?.reason === 'approval' ? need.text : task.state}
      </State>
      {need && (
        <div>
          <Link to={need.to}>{need.action}</Link>
        </div>
      )}
    </td>
    <td data-end="">{task.priority}</td>
    <td>
      <Capabilities names={task.capabilities} />
    </td>
    <td>
      <Holder task={task} />
      {need?.reason === 'failed' && (
        <div className={ui.muted}>
          <VisibleText text={need.text.slice(0, 200)} />
        </div>
      )}
    </td>
    <td>
      <Since task={task} />
    </td>
    <td data-end="">{task.strikes.length}</td>
  </tr>
);

const COLUMNS = [
  'Task',
  'State',
  numberColumn('Priority'),
  'Needs',
  'Agent',
  'Since',
  numberColumn('Strikes'),
];
/** Columns of a table whose rows can be chosen. */
export const CHOSEN_COLUMNS = ['', ...COLUMNS];

interface TaskTableProps {
  readonly tasks: readonly Task[];
  readonly label: string;
}

/** Tasks as rows that lead to their pages. */
export const TaskTable = ({ tasks, label }: TaskTableProps) => (
  <Table label={label} columns={COLUMNS}>
    {tasks.map((task) => (
      <TaskRow key={task.id} task={task} />
    ))}
  </Table>
);
