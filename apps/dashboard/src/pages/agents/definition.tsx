import { useState } from 'react';
import { Link } from '../../data/router.js';
import { ActButton } from '../../ui/act-button.js';
import { CopyRecord, quoteWord } from '../../ui/copy-record.js';
import { formatNumber, formatUsd } from '../../ui/format.js';
import { css as ui, Panel, Time } from '../../ui/ui.js';
import { AgentError } from './agent-error.js';
import { VisibleText } from '../../ui/visible-text.js';
import type { Agent } from './agent-card.js';
import { ChangeDialog } from './change-dialog.js';
import css from '../pages.module.css';

const Tags = ({ names }: { readonly names: readonly string[] }) => (
  <dd className={css.tags}>
    {names.map((name) => (
      <span key={name} className={css.tag}>
        {name}
      </span>
    ))}
    {names.length === 0 && <span className={ui.muted}>none</span>}
  </dd>
);

const budgetText = ({ budget }: Agent): string => {
  if (!budget) return 'no limit of its own';
  const { tokens, microUsd } = budget;
  return [tokens !== null && `${formatNumber(tokens)} tokens`, microUsd !== null && formatUsd(microUsd)]
    .filter(Boolean)
    .join(', ');
};

const Definition = ({ agent }: { readonly agent: Agent }) => (
  <dl className={ui.facts}>
    <dt>Id</dt>
    <dd className={ui.mono}>{agent.id}</dd>
    <dt>Model</dt>
    <dd>
      {agent.model} of the provider {agent.provider}
    </dd>
    <dt>Role</dt>
    <dd>{agent.role ?? <span className={ui.muted}>none</span>}</dd>
    <dt>Capabilities</dt>
    <Tags names={agent.capabilities} />
    <dt>Tools</dt>
    <Tags names={agent.tools} />
    {agent.systemPrompt && (
      <>
        <dt>System prompt</dt>
        <dd className={css.pre}>
          <VisibleText text={agent.systemPrompt} />
        </dd>
      </>
    )}
    {agent.overrides && (
      <>
        <dt>Set here</dt>
        <dd>{agent.overrides.join(', ')}: it wins over the configuration</dd>
      </>
    )}
    <dt>Base</dt>
    <dd>{agent.base}</dd>
    <dt>Parent</dt>
    <dd>
      {agent.parentId === null ? (
        'none: it is the root of its tree'
      ) : (
        <Link to={`/agents/${encodeURIComponent(agent.parentId)}`}>{agent.parentId}</Link>
      )}
      {agent.depth > 0 && `, depth ${agent.depth}`}
    </dd>
    <dt>Budget</dt>
    <dd>{budgetText(agent)}</dd>
    <dt>Spawned</dt>
    <dd>
      <Time at={agent.spawnedAt} isExact /> by {agent.spawnedBy}
    </dd>
    {agent.reason && (
      <>
        <dt>Reason</dt>
        <dd>{agent.reason}</dd>
      </>
    )}
    {agent.error && <AgentError error={agent.error} />}
  </dl>
);

/** The definition of an agent, and the dialog that changes it. */
export const DefinitionPanel = ({ agent, onChanged }: { agent: Agent; onChanged: () => void }) => {
  const [isChanging, setChanging] = useState(false);
  const { id, state } = agent;
  const close = (): void => {
    setChanging(false);
    onChanged();
  };
  return (
    <Panel
      title="Definition"
      isPadded
      className={css.half}
      actions={
        <>
          {state !== 'terminated' && (
            <ActButton permission="operations:write" onClick={() => setChanging(true)}>
              Change
            </ActButton>
          )}
          <CopyRecord
            noun="agent"
            json={`/agents/${encodeURIComponent(id)}`}
            command={`antiphon agent get ${quoteWord(id)}`}
          />
        </>
      }
    >
      <Definition agent={agent} />
      {isChanging && <ChangeDialog agent={agent} onClose={close} />}
    </Panel>
  );
};
