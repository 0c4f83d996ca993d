import type { RouteReply } from '@antiphon/client';
import { PageHead } from '../../app/page-head.js';
import { setFilters, setParams, useParam } from '../../data/router.js';
import { isAbout } from '../../data/event-pages.js';
import { useLiveAgents } from '../../data/agent-live.js';
import { useList, type ListRead } from '../../data/use-list.js';
import { useRead } from '../../data/use-read.js';
import { countOf } from '../../ui/format.js';
import { ActButton } from '../../ui/act-button.js';
import { ShowMore } from '../show-more.js';
import { TypedFilter } from '../../ui/typed-filter.js';
import { Empty, Loading, Panel, ProblemBox } from '../../ui/ui.js';
import { AgentGrid } from './agent-grid.js';
import { AgentTable } from './agent-table.js';
import { AgentTree } from './agent-tree-view.js';
import type { Agent } from './agent-card.js';
import { ALL_VIEWS, StateCounts, useAgentView, ViewSwitch, type AgentView } from './agent-views.js';
import { SpawnDialog } from './spawn-dialog.js';
import css from '../pages.module.css';

const STATES = ['spawning', 'idle', 'working', 'paused', 'error', 'terminated'] as const;
type AgentState = (typeof STATES)[number];
const isState = (text: string): text is AgentState => STATES.includes(text as AgentState);

interface Filters {
  readonly state: string;
  readonly project: string;
  readonly capability: string;
  readonly model: string;
  readonly q: string;
}

const FilterRow = ({ state, project, capability, model, q }: Filters) => {
  const { data } = useRead('listCapabilities', {}, { changesOn: isAbout('agent') });
  const names = data?.capabilities.map(({ name, count }) => ({ name, count })) ?? [];
  return (
    <div className={css.filters} role="search" aria-label="Filters of agents">
      <TypedFilter name="q" label="Text" value={q} hint="name, role, project" />
      <label>
        State
        <select value={state} onChange={(event) => setFilters({ state: event.target.value })}>
          <option value="">all that live</option>
          {STATES.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        Capability
        <select value={capability} onChange={(event) => setFilters({ capability: event.target.value })}>
          <option value="">any</option>
          {capability !== '' && !names.some(({ name }) => name === capability) && (
            <option value={capability}>{capability} (0)</option>
          )}
          {names.map(({ name, count }) => (
            <option key={name} value={name}>{`${name} (${count})`}</option>
          ))}
        </select>
      </label>
      <TypedFilter name="model" label="Model" value={model} />
      <TypedFilter name="project" label="Project" value={project} />
    </div>
  );
};

const NoAgent = () => (
  <Empty title="No agent matches">
    <p>Change the filters, spawn an agent here, or configure one in antiphon.toml.</p>
  </Empty>
);

const titleOf = ({ data, hasMore }: ListRead<RouteReply<'listAgents'>>): string =>
  data ? countOf(data.agents.length, 'agent') + (hasMore ? ', more follow' : '') : 'Agents';

const useFilters = (): Filters => ({
  ...{ state: useParam('state'), project: useParam('project'), capability: useParam('capability') },
  ...{ model: useParam('model'), q: useParam('q') },
});

const queryOf = ({ state, ...texts }: Filters) => ({
  ...(isState(state) ? { state } : {}),
  ...Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== '')),
});

const Shown = ({ agents, view }: { readonly agents: readonly Agent[]; readonly view: AgentView }) => {
  if (view === 'table') return <AgentTable agents={agents} />;
  if (view === 'tree') return <AgentTree agents={agents} />;
  return (
    <div className={css.pad}>
      <AgentGrid agents={agents} label="Agents" />
    </div>
  );
};

export const AgentList = () => {
  useLiveAgents();
  const filters = useFilters();
  const view = useAgentView(ALL_VIEWS);
  const isSpawning = useParam('spawn') !== '';
  const list = useList(
    'listAgents',
    { query: queryOf(filters) },
    { changesOn: isAbout('agent', 'session', 'task') },
  );
  const { data, problem, refresh } = list;
  const agents = data?.agents ?? [];
  return (
    <>
      <PageHead
        title="Agents"
        question="What can each agent do, what does it do, and what does it use?"
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
      <FilterRow {...filters} />
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      <Panel
        title={titleOf(list)}
        actions={
          <>
            <StateCounts agents={agents} />
            <ViewSwitch view={view} views={ALL_VIEWS} />
          </>
        }
      >
        {!data && !problem && <Loading what="agents" />}
        {data && agents.length === 0 && <NoAgent />}
        {agents.length > 0 && <Shown agents={agents} view={view} />}
        <ShowMore list={list} what="agents" count={agents.length} />
      </Panel>
      {isSpawning && <SpawnDialog onClose={() => setParams({ spawn: null, can: null })} />}
    </>
  );
};
