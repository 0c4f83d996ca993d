import { countStates } from '../../data/agent-order.js';
import { setParams, useParam } from '../../data/router.js';
import { Button, State } from '../../ui/ui.js';
import type { Agent } from './agent-card.js';
import css from './agent-card.module.css';

const VIEWS = {
  grid: { title: 'Grid', icon: 'overview' },
  table: { title: 'Table', icon: 'events' },
  tree: { title: 'Tree', icon: 'layout' },
} as const;
export type AgentView = keyof typeof VIEWS;
/** Views of a part of the agents, of which the parents may not be there. */
export const FLAT_VIEWS: readonly AgentView[] = ['grid', 'table'];
export const ALL_VIEWS: readonly AgentView[] = [...FLAT_VIEWS, 'tree'];

/** Returns the view of agents that the address names; the grid for one that is not offered. */
export const useAgentView = (views: readonly AgentView[]): AgentView => {
  const wanted = useParam('view');
  return views.find((name) => name === wanted) ?? 'grid';
};

interface ViewSwitchProps {
  readonly view: AgentView;
  readonly views: readonly AgentView[];
}

/** Chooses how agents are shown. */
export const ViewSwitch = ({ view, views }: ViewSwitchProps) => (
  <div className={css.views} role="group" aria-label="View of agents">
    {views.map((name) => (
      <Button
        key={name}
        icon={VIEWS[name].icon}
        look="quiet"
        aria-pressed={view === name}
        onClick={() => setParams({ view: name === 'grid' ? null : name })}
      >
        {VIEWS[name].title}
      </Button>
    ))}
  </div>
);

/** The number of agents in each state. */
export const StateCounts = ({ agents }: { readonly agents: readonly Agent[] }) => (
  <span className={css.counts}>
    {countStates(agents).map(({ state, count }) => (
      <State key={state} of={state === 'waiting' ? 'pending' : state}>
        {`${count} ${state}`}
      </State>
    ))}
  </span>
);
