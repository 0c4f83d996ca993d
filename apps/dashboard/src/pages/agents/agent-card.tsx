import type { RouteReply } from '@antiphon/client';
import { coursesOf, workedAtOf } from './agent-load.js';
import { useLiveMetrics, useLiveState } from '../../data/agent-live.js';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { Link } from '../../data/router.js';
import { ActButton } from '../../ui/act-button.js';
import { formatCompact, formatUsd, shortId } from '../../ui/format.js';
import { Sparkline } from '../../ui/sparkline.js';
import { css as ui, State, Time } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import css from './agent-card.module.css';

export type Agent = RouteReply<'listAgents'>['agents'][number];
export type AgentMetrics = RouteReply<'listAgentMetrics'>['agents'][number];

/** State and phase of an agent as one word with its sign. */
export const AgentState = ({ agent }: { readonly agent: Pick<Agent, 'state' | 'phase'> }) => {
  if (agent.phase === 'waiting') return <State of="pending">waits for approval</State>;
  return <State of={agent.state}>{agent.phase ? `${agent.state}: ${agent.phase}` : agent.state}</State>;
};

/** Number of capabilities that a card names. */
const SHOWN_CAPABILITIES = 3;

const Capabilities = ({ names }: { readonly names: readonly string[] }) => {
  const more = names.slice(SHOWN_CAPABILITIES);
  if (names.length === 0) return <p className={css.none}>no capabilities</p>;
  return (
    <ul className={css.tags} aria-label="Capabilities">
      {names.slice(0, SHOWN_CAPABILITIES).map((name) => (
        <li key={name} data-tip={name}>
          <VisibleText text={name} />
        </li>
      ))}
      {more.length > 0 && <li data-tip={more.join(', ')}>+{more.length}</li>}
    </ul>
  );
};

const Load = ({ metrics }: { readonly metrics: AgentMetrics | undefined }) => {
  if (!metrics) return <p className={css.none}>…</p>;
  if (!metrics.latest) return <p className={css.none}>no sample yet</p>;
  return (
    <>
      {coursesOf(metrics).map((course) => (
        <Sparkline key={course.label} {...course} />
      ))}
    </>
  );
};

const Today = ({ metrics }: { readonly metrics: AgentMetrics | undefined }) => {
  if (!metrics?.today) return null;
  const { settledTokens, settledMicroUsd } = metrics.today;
  return (
    <p className={css.today}>
      <strong>{formatCompact(settledTokens)}</strong> tokens, <strong>{formatUsd(settledMicroUsd)}</strong>{' '}
      today
    </p>
  );
};

interface CurrentProps {
  readonly agent: Agent;
  /** Titles of open tasks and conversations, by their ids. */
  readonly titles: ReadonlyMap<string, string>;
}

interface CurrentLineProps extends CurrentProps {
  readonly metrics: AgentMetrics | undefined;
}

const Worked = ({ at }: { readonly at: string }) => (
  <>
    worked <Time at={at} />
  </>
);

/** The task or conversation that an agent has open, or the approval that it waits for. */
const Current = ({ agent, titles, metrics }: CurrentLineProps) => {
  const { current } = agent;
  if (!current) {
    const workedAt = workedAtOf(agent, metrics);
    return <p className={css.current}>{workedAt ? <Worked at={workedAt} /> : 'no turn yet'}</p>;
  }
  const { sessionId, taskId, approvalId } = current;
  const title = titles.get(taskId ?? sessionId) ?? shortId(taskId ?? sessionId);
  return (
    <p className={css.current}>
      {approvalId && (
        <>
          <Link to={`/approvals?id=${approvalId}`}>Decide</Link>
          {' · '}
        </>
      )}
      {taskId ? 'task ' : ''}
      <Link to={`/sessions/${sessionId}`}>
        <VisibleText text={title} />
      </Link>
    </p>
  );
};

const PauseButton = ({ agent }: { readonly agent: Agent }) => {
  const { run, isBusy, problem } = useAct();
  if (agent.state === 'terminated') return null;
  const isPaused = agent.state === 'paused';
  const action = isPaused ? 'resume' : 'pause';
  return (
    <>
      {problem && <span className={css.failed}>{problem.message}</span>}
      <ActButton
        permission="agents:write"
        icon={isPaused ? 'play' : 'pause'}
        isOff={isBusy}
        onClick={() => run(() => client.http.controlAgent({ params: { id: agent.id }, body: { action } }))}
      >
        {isPaused ? 'Resume' : 'Pause'}
      </ActButton>
    </>
  );
};

interface AgentCardProps extends CurrentProps {
  readonly metrics: AgentMetrics | undefined;
  /** Place among all agents of the list, from 1 on, and their number. */
  readonly place: number;
  readonly size: number;
}

/** One agent: what it is, what it does and what it uses. */
export const AgentCard = ({ agent: listed, metrics: read, titles, place, size }: AgentCardProps) => {
  const agent = useLiveState(listed);
  const metrics = useLiveMetrics(agent.id, read);
  const name = `agent-${agent.id}`;
  return (
    <article
      className={css.card}
      role="listitem"
      aria-labelledby={name}
      aria-posinset={place}
      aria-setsize={size}
      data-agent={agent.id}
      data-state={agent.phase === 'waiting' ? 'waiting' : agent.state}
    >
      <header className={css.head}>
        <Link id={name} to={`/agents/${encodeURIComponent(agent.id)}`} className={css.name}>
          {agent.name}
        </Link>
        <AgentState agent={agent} />
      </header>
      <p className={css.model}>
        <span data-tip={`${agent.model} of the provider ${agent.provider}`}>{agent.model}</span>
        {agent.project && <span className={ui.muted}> · {agent.project}</span>}
      </p>
      <Capabilities names={agent.capabilities} />
      <div className={css.load}>
        <Load metrics={metrics} />
      </div>
      <Today metrics={metrics} />
      <footer className={css.foot}>
        <Current agent={agent} titles={titles} metrics={metrics} />
        <PauseButton agent={agent} />
      </footer>
    </article>
  );
};
