import type { RouteReply } from '@antiphon/client';
import { textOfTaskWait } from '@antiphon/contracts/task-waits';
import { Link } from '../../data/router.js';
import { css as ui, Id, State, Time } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
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

const isOpen = ({ endedAt }: Task): boolean => endedAt === null;

interface TaskRowProps {
  readonly task: Task;
  readonly isCurrent: boolean;
  readonly isChosen: boolean;
  /** Null for a task that cannot be chosen. */
  readonly choose: (() => void) | null;
}

export const TaskRow = ({ task, isCurrent, isChosen, choose }: TaskRowProps) => (
  <tr aria-current={isCurrent} data-task={task.id}>
    <td>
      {choose && (
        <input type="checkbox" aria-label={`Choose ${task.title}`} checked={isChosen} onChange={choose} />
      )}
    </td>
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
      <State of={task.state} />
    </td>
    <td data-end="">{task.priority}</td>
    <td>
      <Capabilities names={task.capabilities} />
    </td>
    <td>
      <Holder task={task} />
    </td>
    <td>
      {isOpen(task) ? 'queued ' : 'ended '}
      <Time at={isOpen(task) ? task.queuedAt : (task.endedAt ?? task.queuedAt)} />
      {task.deadline !== null && isOpen(task) && (
        <div className={ui.muted}>
          until <Time at={task.deadline} isExact />
        </div>
      )}
    </td>
    <td data-end="">{task.strikes.length}</td>
  </tr>
);
