import { coursesOf } from './agent-load.js';
import { useLiveMetrics } from '../../data/agent-live.js';
import { isAbout } from '../../data/event-pages.js';
import { Link } from '../../data/router.js';
import { useRead } from '../../data/use-read.js';
import { countOf, formatCompact, formatUsd, shortId } from '../../ui/format.js';
import { Sparkline } from '../../ui/sparkline.js';
import { css as ui, Empty, Panel, ProblemBox, State, Time } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { AgentError } from './agent-error.js';
import { AgentState, type Agent } from './agent-card.js';
import { NewConversation } from './new-conversation.js';
import css from '../pages.module.css';

const Use = ({ agentId }: { readonly agentId: string }) => {
  const { data } = useRead('listAgentMetrics', { query: { agents: agentId, minutes: 30 } });
  const metrics = useLiveMetrics(agentId, data?.agents[0]);
  return (
    <>
      <dt>Uses</dt>
      <dd>
        {metrics?.latest
          ? coursesOf(metrics).map((course) => <Sparkline key={course.label} {...course} />)
          : 'no sample yet'}
      </dd>
      {metrics?.today && (
        <>
          <dt>Today</dt>
          <dd>
            {formatCompact(metrics.today.settledTokens)} tokens, {formatUsd(metrics.today.settledMicroUsd)} in{' '}
            {countOf(metrics.today.calls, 'call')}
          </dd>
        </>
      )}
    </>
  );
};

const Work = ({ current }: { readonly current: NonNullable<Agent['current']> }) => (
  <>
    <dt>Works in</dt>
    <dd>
      <Link to={`/sessions/${current.sessionId}`}>session {shortId(current.sessionId)}</Link>
      {current.taskId !== null && `, task ${shortId(current.taskId)}`}
    </dd>
    {current.approvalId !== null && (
      <>
        <dt>Waits for</dt>
        <dd>
          <Link to={`/approvals?id=${current.approvalId}`}>your decision about a tool call</Link>
        </dd>
      </>
    )}
  </>
);

const Queue = ({ agentId }: { readonly agentId: string }) => {
  const query = { agent: agentId, limit: 50 };
  const { data, problem, refresh } = useRead('listSessions', { query }, { changesOn: isAbout('session') });
  const open = data?.sessions.filter(({ state }) => state !== 'idle') ?? [];
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (data && open.length === 0)
    return (
      <Empty title="Nothing is open">
        <p>Send a message, or give it a task.</p>
      </Empty>
    );
  return (
    <ul className={css.list}>
      {open.map(({ id, title, state, lastAt }) => (
        <li key={id}>
          <State of={state === 'waiting' ? 'pending' : state}>
            {state === 'waiting' ? 'waits for a decision' : 'answers'}
          </State>
          <span className={css.grow}>
            <Link to={`/sessions/${id}`}>
              <VisibleText text={title ?? shortId(id)} />
            </Link>
          </span>
          <span className={css.end}>{lastAt && <Time at={lastAt} />}</span>
        </li>
      ))}
    </ul>
  );
};

/** An agent at this moment: its state, its work and its use, and a field for a message. */
export const AgentNow = ({ agent }: { readonly agent: Agent }) => (
  <div className={css.grid}>
    <Panel title="Now" isPadded className={css.half}>
      <dl className={ui.facts}>
        <dt>State</dt>
        <dd>
          <AgentState agent={agent} />
        </dd>
        {agent.reason && (
          <>
            <dt>Reason</dt>
            <dd>{agent.reason}</dd>
          </>
        )}
        {agent.error && <AgentError error={agent.error} />}
        {agent.queued && (
          <>
            <dt>Waits</dt>
            <dd>
              at place {agent.queued.position} of the queue of its tree ({agent.queued.limit})
            </dd>
          </>
        )}
        {agent.current && <Work current={agent.current} />}
        {agent.lastTurnAt && (
          <>
            <dt>Last turn</dt>
            <dd>
              <Time at={agent.lastTurnAt} />
            </dd>
          </>
        )}
        {(agent.lastSeenAt || agent.state === 'working') && (
          <>
            <dt>Last heartbeat</dt>
            <dd>{agent.lastSeenAt ? <Time at={agent.lastSeenAt} /> : 'none yet'}</dd>
          </>
        )}
        <dt>Model</dt>
        <dd>
          {agent.model} of {agent.provider}
        </dd>
        <Use agentId={agent.id} />
      </dl>
    </Panel>
    <Panel title="New conversation" isPadded className={css.half}>
      <NewConversation agent={agent} />
    </Panel>
    <Panel title="Open conversations">
      <Queue agentId={agent.id} />
    </Panel>
  </div>
);
