import { isAbout } from '../../data/event-pages.js';
import { Link, usePosition } from '../../data/router.js';
import { useList } from '../../data/use-list.js';
import { useRead } from '../../data/use-read.js';
import { formatNumber, formatUsd } from '../../ui/format.js';
import {
  css as ui,
  Empty,
  Loading,
  numberColumn,
  Panel,
  ProblemBox,
  State,
  Table,
  Time,
} from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { Meter } from '../money/meter.js';
import { ShowMore } from '../show-more.js';
import { TaskTable } from '../tasks/task-row.js';
import css from '../pages.module.css';

/** Tasks that an agent has had, the newest first. */
export const AgentTasks = ({ agentId }: { readonly agentId: string }) => {
  const list = useList(
    'listTasks',
    { query: { agent: agentId, limit: 50 } },
    { changesOn: isAbout('task', 'run') },
  );
  const { data, problem, refresh } = list;
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="tasks" />;
  if (data.tasks.length === 0)
    return (
      <Empty title="No task yet">
        <p>Tasks that need its capabilities, or name it, appear here.</p>
      </Empty>
    );
  return (
    <>
      <TaskTable label="Tasks" tasks={data.tasks} />
      <ShowMore list={list} what="tasks" count={data.tasks.length} />
    </>
  );
};

/** Facts that an agent believes, the newest first. */
export const AgentMemory = ({ agentId }: { readonly agentId: string }) => {
  const query = { agent: agentId, limit: 50 };
  const { data, problem, refresh } = useRead(
    'queryMemory',
    { query },
    { changesOn: isAbout('memory', 'session') },
  );
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="memory" />;
  if (data.entries.length === 0)
    return (
      <Empty title="It has learned nothing yet">
        <p>Facts are learned from messages. A message such as “My name is Alice” teaches one.</p>
      </Empty>
    );
  return (
    <>
      <Table label="Facts" columns={['About', 'Fact', numberColumn('Confidence'), 'Learned']}>
        {data.entries.map((entry) => (
          <tr key={entry.memoryId}>
            <td>
              <VisibleText text={entry.subject} />
            </td>
            <td className={css.contentCell}>
              <Link to={`/memory?agent=${encodeURIComponent(agentId)}&entry=${entry.memoryId}`}>
                <VisibleText text={`${entry.predicate}: ${entry.object}`} />
              </Link>
            </td>
            <td data-end="">{Math.round(entry.confidence * 100)} %</td>
            <td>
              <Time at={entry.learnedAt} />
            </td>
          </tr>
        ))}
      </Table>
      <p className={css.pad}>
        <Link to={`/memory?agent=${encodeURIComponent(agentId)}`}>
          All facts, with those that were replaced
        </Link>
      </p>
    </>
  );
};

/** Cost of an agent by model, and its budget. */
export const AgentMoney = ({ agentId }: { readonly agentId: string }) => {
  const isPast = usePosition() !== null;
  const changesOn = isAbout('session', 'budget');
  const usage = useRead('readUsage', { query: { agent: agentId, by: 'model' } }, { changesOn });
  const budgets = useRead('readBudgets', { query: { agent: agentId } }, { changesOn });
  const own = budgets.data?.scopes.find(({ key }) => key === `agent/${agentId}`);
  return (
    <div className={css.grid}>
      <Panel title={isPast ? 'Cost until the position' : 'Cost by model'} className={css.wide}>
        {usage.problem && <ProblemBox problem={usage.problem} retry={usage.refresh} />}
        {!usage.data && !usage.problem && <Loading what="the cost" />}
        {usage.data && (
          <Table
            label="Cost by model"
            columns={['Model', numberColumn('Calls'), numberColumn('Tokens'), numberColumn('Cost')]}
          >
            {[...(usage.data.groups ?? []), { ...usage.data.total, name: 'Total' }].map((row) => (
              <tr key={row.name}>
                <td>
                  <VisibleText text={row.name} />
                </td>
                <td data-end="">{formatNumber(row.calls)}</td>
                <td data-end="">{formatNumber(row.settledTokens)}</td>
                <td data-end="">{formatUsd(row.settledMicroUsd)}</td>
              </tr>
            ))}
          </Table>
        )}
      </Panel>
      <Panel title="Budget" isPadded className={css.narrow}>
        {own ? (
          <div className={css.stack}>
            <Meter
              label={`US dollars of ${agentId}`}
              settled={own.settledMicroUsd}
              reserved={own.reservedMicroUsd}
              limit={own.limitMicroUsd}
              format={formatUsd}
            />
            <Meter
              label={`Tokens of ${agentId}`}
              settled={own.settledTokens}
              reserved={own.reservedTokens}
              limit={own.limitTokens}
              format={formatNumber}
            />
          </div>
        ) : (
          <p className={ui.muted}>No limit of its own.</p>
        )}
        <p>
          <Link to="/money">All budgets</Link>
        </p>
      </Panel>
    </div>
  );
};

const lineOf = (content: object): string => {
  const { text } = content as { readonly text?: unknown };
  return typeof text === 'string' ? text : JSON.stringify(content);
};

/** Messages to an agent, its topics and everyone, the newest first. */
export const AgentInbox = ({ agentId }: { readonly agentId: string }) => {
  const list = useList(
    'listMessages',
    { params: { id: agentId }, query: { limit: 50 } },
    { changesOn: isAbout('agent', 'session') },
  );
  const { data, problem, refresh } = list;
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="messages" />;
  if (data.messages.length === 0)
    return (
      <Empty title="No message yet">
        <p>Messages to the agent, to its topics and to everyone appear here.</p>
      </Empty>
    );
  return (
    <>
      <Table label="Messages" columns={['From', 'To', 'Type', 'Text', 'Read', 'Sent']}>
        {data.messages.map((message) => (
          <tr key={message.messageId}>
            <td>
              <VisibleText text={message.from} />
            </td>
            <td>
              <VisibleText
                text={
                  message.to.kind === 'agent'
                    ? message.to.agentId
                    : message.to.kind === 'topic'
                      ? `topic ${message.to.topic}`
                      : 'everyone'
                }
              />
            </td>
            <td>{message.type}</td>
            <td className={css.contentCell}>
              <VisibleText text={lineOf(message.content).slice(0, 400)} />
            </td>
            <td>{message.isRead ? <State of="ok">read</State> : <State of="queued">not read</State>}</td>
            <td>
              <Time at={message.sentAt} />
            </td>
          </tr>
        ))}
      </Table>
      <ShowMore list={list} what="messages" count={data.messages.length} />
    </>
  );
};
