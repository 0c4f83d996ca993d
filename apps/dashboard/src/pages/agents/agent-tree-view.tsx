import { useState } from 'react';
import { useLiveState } from '../../data/agent-live.js';
import { Link } from '../../data/router.js';
import { countOf } from '../../ui/format.js';
import { css as ui, IconButton } from '../../ui/ui.js';
import { AgentState, type Agent } from './agent-card.js';
import { treeOfAgents, type AgentNode } from './agent-tree.js';
import css from './agent-card.module.css';
import pages from '../pages.module.css';

const Line = ({ agent: listed, below }: Pick<AgentNode<Agent>, 'agent' | 'below'>) => {
  const agent = useLiveState(listed);
  return (
    <span className={css.treeLine}>
      <Link to={`/agents/${encodeURIComponent(agent.id)}`} className={pages.name}>
        {agent.name}
      </Link>
      <AgentState agent={agent} />
      <span className={ui.muted}>
        {agent.model}
        {below > 0 && ` · ${countOf(below, 'agent')} below`}
      </span>
    </span>
  );
};

const Node = ({ node }: { readonly node: AgentNode<Agent> }) => {
  const { agent, children, below } = node;
  const [isOpen, setOpen] = useState(true);
  return (
    <li>
      <span className={css.treeRow}>
        {children.length > 0 ? (
          <IconButton
            icon={isOpen ? 'down' : 'next'}
            label={`Agents below ${agent.name}`}
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          />
        ) : (
          <span className={css.treeLeaf} aria-hidden="true" />
        )}
        <Line agent={agent} below={below} />
      </span>
      {isOpen && children.length > 0 && (
        <ul aria-label={`Agents below ${agent.name}`}>
          {children.map((child) => (
            <Node key={child.agent.id} node={child} />
          ))}
        </ul>
      )}
    </li>
  );
};

/** Agents below those that have spawned them. */
export const AgentTree = ({ agents }: { readonly agents: readonly Agent[] }) => (
  <ul aria-label="Agents and the agents that they spawned" className={css.tree}>
    {treeOfAgents(agents).map((node) => (
      <Node key={node.agent.id} node={node} />
    ))}
  </ul>
);
