import { PageHead } from '../../app/page-head.js';
import { isAbout } from '../../data/event-pages.js';
import { lineOf, recipientOf, threadsOf, type Message, type ThreadLine } from '../../data/message-threads.js';
import { Link, setFilters, setParams, useParam } from '../../data/router.js';
import { useList } from '../../data/use-list.js';
import { useRead } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { countOf, formatNumber } from '../../ui/format.js';
import { TypedFilter } from '../../ui/typed-filter.js';
import { Button, css as ui, Empty, Loading, Panel, ProblemBox, State, Time } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { ShowMore } from '../show-more.js';
import { ComposeDialog } from './compose-dialog.js';
import pages from '../pages.module.css';
import css from './messages.module.css';

const TYPES = [
  ...['AgentSpoke', 'AgentMoved', 'TaskAssigned', 'TaskEnded', 'ChildEnded', 'Request', 'Reply', 'Custom'],
] as const;
type Type = Message['type'];
const isType = (text: string): text is Type => (TYPES as readonly string[]).includes(text);

const AGENT = 'agent/';

/** Longest text of a message in the list. Its event has all of it. */
const MAX_TEXT = 1_000;

const Sender = ({ from }: { readonly from: string }) =>
  from.startsWith(AGENT) ? (
    <Link to={`/agents/${encodeURIComponent(from.slice(AGENT.length))}`}>
      <VisibleText text={from.slice(AGENT.length)} />
    </Link>
  ) : (
    <VisibleText text={from} />
  );

const Recipient = ({ message }: { readonly message: Message }) =>
  message.to.kind === 'agent' ? (
    <Link to={`/agents/${encodeURIComponent(message.to.agentId)}?tab=messages`}>
      <VisibleText text={message.to.agentId} />
    </Link>
  ) : (
    <VisibleText text={recipientOf(message)} />
  );

const ReadMark = ({ isRead }: Pick<Message, 'isRead'>) => {
  if (isRead === null) return null;
  return isRead ? <State of="ok">read</State> : <State of="queued">not read</State>;
};

const Line = ({ line: { message, depth } }: { readonly line: ThreadLine }) => {
  const text = lineOf(message);
  const answerTo = message.from.startsWith(AGENT) ? message.from.slice(AGENT.length) : '';
  return (
    <li
      className={css.message}
      style={{ marginInlineStart: `${depth * 1.25}rem` }}
      data-message={message.messageId}
    >
      <div className={css.head}>
        <strong>
          <Sender from={message.from} />
        </strong>
        <span aria-hidden="true">→</span>
        <span className="visually-hidden">to</span>
        <Recipient message={message} />
        <span className={pages.tag}>{message.type}</span>
        <ReadMark isRead={message.isRead} />
        <span className={css.end}>
          <Time at={message.sentAt} /> ·{' '}
          <Link to={`/events?open=${message.logPosition}`}>event {formatNumber(message.logPosition)}</Link>
        </span>
      </div>
      <p className={css.text}>
        <VisibleText text={text.slice(0, MAX_TEXT)} />
        {text.length > MAX_TEXT && ' …'}
      </p>
      <div className={css.foot}>
        {message.causeId !== null && depth === 0 && (
          <span className={ui.muted}>
            caused by{' '}
            <code className={ui.mono}>
              <VisibleText text={message.causeId} />
            </code>
          </span>
        )}
        {answerTo !== '' && (
          <Button
            look="quiet"
            onClick={() => setParams({ to: answerTo, cause: message.messageId, write: '1' })}
          >
            Answer
          </Button>
        )}
      </div>
    </li>
  );
};

interface Filters {
  readonly agent: string;
  readonly topic: string;
  readonly type: string;
}

const FilterRow = ({ agent, topic, type }: Filters) => {
  const agents = useRead('listAgents', {}, { changesOn: isAbout('agent') }).data?.agents ?? [];
  return (
    <div className={pages.filters} role="search" aria-label="Filters of messages">
      <label>
        Agent
        <select value={agent} onChange={(event) => setFilters({ agent: event.target.value })}>
          <option value="">any</option>
          {agent !== '' && !agents.some(({ id }) => id === agent) && <option>{agent}</option>}
          {agents.map(({ id }) => (
            <option key={id}>{id}</option>
          ))}
        </select>
      </label>
      <TypedFilter name="topic" label="Topic" value={topic} />
      <label>
        Type
        <select value={type} onChange={(event) => setFilters({ type: event.target.value })}>
          <option value="">any</option>
          {TYPES.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
    </div>
  );
};

/** Messages between agents, as threads. */
export const Messages = () => {
  const filters = { agent: useParam('agent'), topic: useParam('topic'), type: useParam('type') };
  const isWriting = useParam('write') !== '';
  const query = {
    limit: 100,
    ...(filters.agent && { agent: filters.agent }),
    ...(filters.topic && { topic: filters.topic }),
    ...(isType(filters.type) && { type: filters.type }),
  };
  const list = useList('listWorkspaceMessages', { query }, { changesOn: isAbout('agent') });
  const { data, problem, refresh } = list;
  const messages = data?.messages ?? [];
  return (
    <>
      <PageHead
        title="Messages"
        question="What do agents say to each other?"
        actions={
          <ActButton
            permission="agents:write"
            look="primary"
            icon="send"
            onClick={() => setParams({ write: '1' })}
          >
            Write a message
          </ActButton>
        }
      />
      <FilterRow {...filters} />
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      <Panel
        title={
          data ? countOf(messages.length, 'message') + (list.hasMore ? ', more follow' : '') : 'Messages'
        }
      >
        {!data && !problem && <Loading what="messages" />}
        {data && messages.length === 0 && (
          <Empty title="No message matches">
            <p>Agents send messages by their tool `send_message`. Write one here to begin.</p>
          </Empty>
        )}
        <ol className={css.list} aria-label="Messages">
          {threadsOf(messages).map((line) => (
            <Line key={line.message.messageId} line={line} />
          ))}
        </ol>
        <ShowMore list={list} what="messages" count={messages.length} />
      </Panel>
      {isWriting && <ComposeDialog onClose={() => setParams({ write: null, to: null, cause: null })} />}
    </>
  );
};
