import type { LogEvent, RouteReply } from '@antiphon/client';
import { useState } from 'react';
import { PageHead } from '../../app/page-head.js';
import type { PageProps } from '../../app/pages.js';
import { isAbout } from '../../data/event-pages.js';
import { client } from '../../data/gateway.js';
import { Link } from '../../data/router.js';
import { useRead } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { ConfirmDialog } from '../../ui/confirm-dialog.js';
import { CopyRecord } from '../../ui/copy-record.js';
import { countOf, wordsOfType } from '../../ui/format.js';
import { Code } from '../../ui/json.js';
import { Markdown } from '../../ui/markdown.js';
import { css as ui, Id, Loading, Panel, ProblemBox, State, Time } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { CreateDialog } from './create-dialog.js';
import { Attempts } from './attempts.js';
import { promptOf, specOfTask } from './task-history.js';
import { Capabilities, Holder, TaskTable, type Task } from './task-row.js';
import pages from '../pages.module.css';
import css from './tasks.module.css';

const changesTask = isAbout('task', 'agent', 'session');

interface OtherTaskProps {
  readonly name: string;
  readonly id: string | null | undefined;
}

const OtherTask = ({ name, id }: OtherTaskProps) =>
  id && (
    <>
      <dt>{name}</dt>
      <dd>
        <Link to={`/tasks/${id}`}>
          <Id id={id} />
        </Link>
      </dd>
    </>
  );

const Facts = ({ task }: { readonly task: Task }) => (
  <dl className={ui.facts}>
    <dt>State</dt>
    <dd>
      <State of={task.state} />
    </dd>
    <dt>Agent</dt>
    <dd>
      <Holder task={task} />
    </dd>
    <dt>Needs</dt>
    <dd>
      <Capabilities names={task.capabilities} />
    </dd>
    <dt>Priority</dt>
    <dd>{task.priority}</dd>
    <dt>Project</dt>
    <dd>
      {task.project === null ? <span className={ui.muted}>none</span> : <VisibleText text={task.project} />}
    </dd>
    <dt>Queued</dt>
    <dd>
      <Time at={task.queuedAt} isExact />
    </dd>
    {task.deadline !== null && (
      <>
        <dt>Deadline</dt>
        <dd>
          <Time at={task.deadline} isExact />
        </dd>
      </>
    )}
    {task.parentAgentId !== null && (
      <>
        <dt>Delegated by</dt>
        <dd>
          <Link to={`/agents/${encodeURIComponent(task.parentAgentId)}`}>{task.parentAgentId}</Link>
        </dd>
      </>
    )}
    <OtherTask name="Parent task" id={task.parentTaskId} />
    <OtherTask name="Tries again" id={task.retryOf} />
    <OtherTask name="Tried again as" id={task.retriedBy} />
  </dl>
);

const Children = ({ id }: { readonly id: string }) => {
  const { data } = useRead('listTasks', { query: { parent: id, limit: 100 } }, { changesOn: changesTask });
  if (!data || data.tasks.length === 0) return null;
  return (
    <Panel title={countOf(data.tasks.length, 'child task')}>
      <TaskTable label="Child tasks" tasks={data.tasks} />
    </Panel>
  );
};

const Events = ({ events }: { readonly events: readonly LogEvent[] }) => (
  <Panel title={countOf(events.length, 'event')}>
    <ul className={pages.list}>
      {events.map((event) => (
        <li key={event.position}>
          <span className={pages.grow}>
            <Link to={`/events?open=${event.position}`}>{wordsOfType(event.type)}</Link>
          </span>
          <span className={pages.end}>
            #{event.position} · <Time at={event.recordedAt} />
          </span>
        </li>
      ))}
    </ul>
  </Panel>
);

const Actions = ({ task, events }: { readonly task: Task; readonly events: readonly LogEvent[] }) => {
  const [dialog, setDialog] = useState<'cancel' | 'again' | null>(null);
  const spec = specOfTask(events);
  const close = (): void => setDialog(null);
  return (
    <>
      <CopyRecord noun="task" json={`/tasks/${task.id}`} command={`antiphon task get ${task.id}`} />
      {spec && (
        <ActButton permission="runs:write" onClick={() => setDialog('again')}>
          {task.state === 'failed' ? 'Try again' : 'Do it again'}
        </ActButton>
      )}
      {task.endedAt === null && (
        <ActButton permission="runs:write" look="danger" onClick={() => setDialog('cancel')}>
          Cancel
        </ActButton>
      )}
      {dialog === 'cancel' && (
        <ConfirmDialog
          title="Cancel this task?"
          action="Cancel the task"
          permission="runs:write"
          onConfirm={() => client.http.cancelTask({ params: { id: task.id }, body: { action: 'cancel' } })}
          onClose={close}
        >
          <p>The turn that works on it is cancelled too.</p>
        </ConfirmDialog>
      )}
      {dialog === 'again' && spec && (
        <CreateDialog
          title="A new task with the same specification"
          start={spec}
          {...(task.state === 'failed' && { retryOf: task.id })}
          onClose={close}
        />
      )}
    </>
  );
};

type TaskRead = RouteReply<'getTask'>;

const Result = ({ task }: { readonly task: TaskRead }) =>
  task.result && (
    <Panel title={task.state === 'failed' ? 'Reason of the failure' : 'Result'} isPadded>
      {task.result.text === '' ? (
        <p className={ui.muted}>{task.result.code ?? 'It has no text.'}</p>
      ) : (
        <Markdown text={task.result.text} />
      )}
    </Panel>
  );

/** A task: prompt, attempts, result, session, parent, children and events. */
export const TaskPage = ({ params }: PageProps) => {
  const id = params['id'] ?? '';
  const { data: task, problem, refresh } = useRead('getTask', { params: { id } }, { changesOn: changesTask });
  const read = useRead(
    'readEvents',
    { query: { stream: `task-${id}`, order: 'asc', limit: 200 } },
    { changesOn: isAbout('task') },
  );
  const events = read.data?.events ?? [];
  const prompt = promptOf(events);
  if (!task)
    return (
      <>
        <PageHead title="Task" />
        {problem ? <ProblemBox problem={problem} retry={refresh} /> : <Loading what="the task" />}
      </>
    );
  return (
    <>
      <PageHead
        title={task.title}
        tabTitle={`${task.state} · ${task.title} · Tasks`}
        actions={<Actions task={task} events={events} />}
      />
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      <div className={pages.grid}>
        <div className={`${pages.stack} ${pages.wide}`}>
          <Panel title="Prompt" isPadded>
            {prompt === null ? (
              <p className={ui.muted}>{read.data ? 'The prompt is not in the log any more.' : 'Loading …'}</p>
            ) : (
              <Code text={prompt} label="Prompt" />
            )}
          </Panel>
          <Result task={task} />
          <Attempts events={events} />
          <Children id={id} />
        </div>
        <div className={`${pages.stack} ${pages.narrow}`}>
          <Panel title="Facts" isPadded>
            <div className={css.facts}>
              <Facts task={task} />
            </div>
          </Panel>
          <Events events={events} />
        </div>
      </div>
    </>
  );
};
