import type { RouteReply } from '@antiphon/client';
import { PageHead } from '../../app/page-head.js';
import { Link, setFilters, setParams, useParam } from '../../data/router.js';
import { isAbout } from '../../data/event-pages.js';
import { useList, type ListRead } from '../../data/use-list.js';
import { countOf } from '../../ui/format.js';
import { ActButton } from '../../ui/act-button.js';
import { ShowMore } from '../show-more.js';
import { TypedFilter } from '../../ui/typed-filter.js';
import { css as ui, Empty, Loading, Panel, ProblemBox, State, Table, Time } from '../../ui/ui.js';
import { SpawnDialog } from './spawn-dialog.js';
import css from '../pages.module.css';

export type Agent = RouteReply<'listAgents'>['agents'][number];

const STATES = ['spawning', 'idle', 'working', 'paused', 'error', 'terminated'] as const;
type AgentState = (typeof STATES)[number];
const isState = (text: string): text is AgentState => STATES.includes(text as AgentState);

export const AgentState = ({ agent }: { readonly agent: Agent }) => (
  <State of={agent.state}>{agent.phase ? `${agent.state}: ${agent.phase}` : agent.state}</State>
);

const Row = ({ agent }: { readonly agent: Agent }) => (
  <tr>
    <td>
      <Link to={`/agents/${encodeURIComponent(agent.id)}`} className={css.name}>
        {agent.name}
      </Link>
      {agent.name !== agent.id && <div className={ui.mono}>{agent.id}</div>}
    </td>
    <td>
      <AgentState agent={agent} />
    </td>
    <td>
      {agent.model}
      <div className={ui.muted}>{agent.provider}</div>
    </td>
    <td>{agent.project ?? <span className={ui.muted}>none</span>}</td>
    <td>
      {agent.parentId === null ? (
        <span className={ui.muted}>root</span>
      ) : (
        <Link to={`/agents/${encodeURIComponent(agent.parentId)}`}>{agent.parentId}</Link>
      )}
    </td>
    <td>{agent.lastSeenAt ? <Time at={agent.lastSeenAt} /> : <span className={ui.muted}>none yet</span>}</td>
  </tr>
);

const Filters = ({ state, project }: { readonly state: string; readonly project: string }) => (
  <div className={css.filters}>
    <label>
      State
      <select value={state} onChange={(event) => setFilters({ state: event.target.value })}>
        <option value="">all that live</option>
        {STATES.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
    <TypedFilter name="project" label="Project" value={project} />
  </div>
);

const Rows = ({ agents }: { readonly agents: readonly Agent[] }) =>
  agents.length === 0 ? (
    <Empty title="No agent matches">
      <p>Change the filters, spawn an agent here, or configure one in antiphon.toml.</p>
    </Empty>
  ) : (
    <Table label="Agents" columns={['Agent', 'State', 'Model', 'Project', 'Parent', 'Last heartbeat']}>
      {agents.map((agent) => (
        <Row key={agent.id} agent={agent} />
      ))}
    </Table>
  );

const titleOf = ({ data, hasMore }: ListRead<RouteReply<'listAgents'>>): string =>
  data ? countOf(data.agents.length, 'agent') + (hasMore ? ', more follow' : '') : 'Agents';

export const AgentList = () => {
  const state = useParam('state');
  const project = useParam('project');
  const isSpawning = useParam('spawn') !== '';
  const query = { ...(isState(state) ? { state } : {}), ...(project === '' ? {} : { project }) };
  const list = useList('listAgents', { query }, { changesOn: isAbout('agent', 'session', 'task') });
  const { data, problem, refresh } = list;
  return (
    <>
      <PageHead
        title="Agents"
        question="What is each agent doing, and can I start, pause or stop it?"
        actions={
          <ActButton
            permission="agents:write"
            look="primary"
            icon="plus"
            onClick={() => setParams({ spawn: '1' })}
          >
            Spawn an agent
          </ActButton>
        }
      />
      <Filters state={state} project={project} />
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      <Panel title={titleOf(list)}>
        {!data && !problem && <Loading what="agents" />}
        {data && <Rows agents={data.agents} />}
        <ShowMore list={list} what="agents" count={data?.agents.length ?? 0} />
      </Panel>
      {isSpawning && <SpawnDialog bases={data?.agents ?? []} onClose={() => setParams({ spawn: null })} />}
    </>
  );
};
