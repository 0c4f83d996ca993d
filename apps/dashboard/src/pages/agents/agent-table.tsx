import { useLiveState } from '../../data/agent-live.js';
import { Link } from '../../data/router.js';
import { css as ui, Table, Time } from '../../ui/ui.js';
import { AgentState, type Agent } from './agent-card.js';
import { workedAtOf } from './agent-load.js';
import css from '../pages.module.css';

const Row = ({ agent: listed }: { readonly agent: Agent }) => {
  const agent = useLiveState(listed);
  const workedAt = workedAtOf(agent);
  return (
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
      <td>{agent.capabilities.join(', ') || <span className={ui.muted}>none</span>}</td>
      <td>{agent.project ?? <span className={ui.muted}>none</span>}</td>
      <td>
        {agent.parentId === null ? (
          <span className={ui.muted}>root</span>
        ) : (
          <Link to={`/agents/${encodeURIComponent(agent.parentId)}`}>{agent.parentId}</Link>
        )}
      </td>
      <td>{workedAt ? <Time at={workedAt} /> : <span className={ui.muted}>none</span>}</td>
    </tr>
  );
};

const COLUMNS = ['Agent', 'State', 'Model', 'Capabilities', 'Project', 'Parent', 'Worked'];

/** Agents as rows. */
export const AgentTable = ({ agents }: { readonly agents: readonly Agent[] }) => (
  <Table label="Agents" columns={COLUMNS}>
    {agents.map((agent) => (
      <Row key={agent.id} agent={agent} />
    ))}
  </Table>
);
