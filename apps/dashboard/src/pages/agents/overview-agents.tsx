import type { RouteReply } from '@antiphon/client';
import { useLiveAgents } from '../../data/agent-live.js';
import { orderAgents } from '../../data/agent-order.js';
import { Link } from '../../data/router.js';
import type { Read } from '../../data/use-read.js';
import { formatNumber } from '../../ui/format.js';
import { css as ui, Empty, Loading, Panel, ProblemBox } from '../../ui/ui.js';
import { AgentGrid } from './agent-grid.js';
import { AgentTable } from './agent-table.js';
import type { Agent } from './agent-card.js';
import { FLAT_VIEWS, StateCounts, useAgentView, ViewSwitch, type AgentView } from './agent-views.js';
import css from '../pages.module.css';

/** Number of agents on the overview: those that need or do something first. */
const SHOWN = 24;

const Shown = ({ agents, view }: { readonly agents: readonly Agent[]; readonly view: AgentView }) =>
  view === 'table' ? (
    <AgentTable agents={agents} />
  ) : (
    <div className={css.pad}>
      <AgentGrid agents={agents} label="Agents" section={SHOWN} />
    </div>
  );

/** The agents of the overview, with a link to all of them. */
export const OverviewAgents = ({ read }: { readonly read: Read<RouteReply<'listAgents'>> }) => {
  useLiveAgents();
  const view = useAgentView(FLAT_VIEWS);
  const { data, problem, refresh } = read;
  const agents = data?.agents ?? [];
  const shown = orderAgents(agents).slice(0, SHOWN);
  const left = agents.length - shown.length;
  return (
    <Panel
      title="Agents"
      actions={
        <>
          {data && <StateCounts agents={agents} />}
          <ViewSwitch view={view} views={FLAT_VIEWS} />
          <Link to="/agents?spawn=1" className={ui.button}>
            Spawn an agent
          </Link>
        </>
      }
    >
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      {!data && !problem && <Loading what="agents" />}
      {data && shown.length === 0 && (
        <Empty title="No agent yet">
          <p>Spawn one, or configure it in antiphon.toml.</p>
        </Empty>
      )}
      {shown.length > 0 && <Shown agents={shown} view={view} />}
      {(left > 0 || data?.nextCursor) && (
        <p className={css.pad}>
          <Link to="/agents">
            {data?.nextCursor ? 'All agents' : `All ${formatNumber(agents.length)} agents`}
          </Link>
        </p>
      )}
    </Panel>
  );
};
