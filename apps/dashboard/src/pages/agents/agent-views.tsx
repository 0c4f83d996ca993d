import { countStates } from '../../data/agent-order.js';
import { setParams, useParam } from '../../data/router.js';
import { Button, State } from '../../ui/ui.js';
import type { Agent } from './agent-card.js';
import css from './agent-card.module.css';

const VIEWS = ['grid', 'table'] as const;
export type AgentView = (typeof VIEWS)[number];

/** Returns the view of agents that the address names. */
export const useAgentView = (): AgentView => (useParam('view') === 'table' ? 'table' : 'grid');

/** Chooses cards or a table. */
export const ViewSwitch = ({ view }: { readonly view: AgentView }) => (
  <div className={css.views} role="group" aria-label="View of agents">
    {VIEWS.map((name) => (
      <Button
        key={name}
        icon={name === 'grid' ? 'overview' : 'events'}
        look="quiet"
        aria-pressed={view === name}
        onClick={() => setParams({ view: name === 'grid' ? null : name })}
      >
        {name === 'grid' ? 'Grid' : 'Table'}
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
