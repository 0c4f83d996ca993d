import { useState } from 'react';
import { PageHead } from '../../app/page-head.js';
import type { PageProps } from '../../app/pages.js';
import { Link, navigate } from '../../data/router.js';
import { useAct, type Act } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { useList } from '../../data/use-list.js';
import { useRead } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { ConfirmDialog } from '../../ui/confirm-dialog.js';
import { CopyRecord, quoteWord } from '../../ui/copy-record.js';
import { formatNumber, formatUsd } from '../../ui/format.js';
import { ShowMore } from '../show-more.js';
import { css as ui, Empty, Field, Loading, Panel, ProblemBox, State, Table, Time } from '../../ui/ui.js';
import { SessionTable } from '../session/session-table.js';
import { startConversation } from '../session/start-conversation.js';
import { AgentError } from './agent-error.js';
import { AgentState, type Agent } from './agent-list.js';
import css from '../pages.module.css';

const Controls = ({
  agent,
  act,
  ask,
}: {
  readonly agent: Agent;
  readonly act: Act;
  readonly ask: () => void;
}) => {
  const { id, state } = agent;
  const control = (action: 'pause' | 'resume') => () =>
    act.run(() => client.http.controlAgent({ params: { id }, body: { action } }));
  if (state === 'terminated') return null;
  return (
    <>
      {state === 'paused' ? (
        <ActButton permission="agents:write" icon="play" isOff={act.isBusy} onClick={control('resume')}>
          Resume
        </ActButton>
      ) : (
        <ActButton permission="agents:write" icon="pause" isOff={act.isBusy} onClick={control('pause')}>
          Pause
        </ActButton>
      )}
      <ActButton permission="agents:write" look="danger" icon="stop" isOff={act.isBusy} onClick={ask}>
        Terminate
      </ActButton>
    </>
  );
};

const TerminateDialog = ({ agent, onClose }: { readonly agent: Agent; readonly onClose: () => void }) => {
  const [reason, setReason] = useState('');
  const query = reason === '' ? {} : { reason };
  return (
    <ConfirmDialog
      title={`Terminate ${agent.name}?`}
      action="Terminate"
      permission="agents:write"
      onConfirm={() => client.http.terminateAgent({ params: { id: agent.id }, query })}
      onClose={onClose}
    >
      <p>
        The agent and all its descendants end for good. Open turns and tasks are cancelled, and the id is
        never used again.
      </p>
      <Field label="Reason" hint="The history shows it.">
        {(props) => (
          <input
            {...props}
            value={reason}
            maxLength={2_000}
            onChange={(event) => setReason(event.target.value)}
          />
        )}
      </Field>
    </ConfirmDialog>
  );
};

const Definition = ({ agent }: { readonly agent: Agent }) => (
  <dl className={ui.facts}>
    <dt>Id</dt>
    <dd className={ui.mono}>{agent.id}</dd>
    <dt>Model</dt>
    <dd>
      {agent.model} of the provider {agent.provider}
    </dd>
    <dt>Tools</dt>
    <dd className={css.tags}>
      {agent.tools.map((tool) => (
        <span key={tool} className={css.tag}>
          {tool}
        </span>
      ))}
      {agent.tools.length === 0 && <span className={ui.muted}>none</span>}
    </dd>
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
    <dd>
      {agent.budget
        ? [
            agent.budget.tokens !== null && `${formatNumber(agent.budget.tokens)} tokens`,
            agent.budget.microUsd !== null && formatUsd(agent.budget.microUsd),
          ]
            .filter(Boolean)
            .join(', ')
        : 'no limit of its own'}
    </dd>
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

const isOf = (id: string) => (event: { readonly category: string; readonly data: unknown }) =>
  event.category === 'session' || (event.data as { agentId?: string } | null)?.agentId === id;

const History = ({ id }: { readonly id: string }) => {
  const list = useList('readHistory', { params: { id }, query: { limit: 50 } }, { changesOn: isOf(id) });
  const { data, problem, refresh } = list;
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="the history" />;
  return (
    <>
      <Table label="Changes of state" columns={['From', 'To', 'By', 'Reason', 'Event', 'When']}>
        {data.changes.map((change) => (
          <tr key={`${change.eventId} ${change.to}`}>
            <td>{change.from ? <State of={change.from} /> : <span className={ui.muted}>new</span>}</td>
            <td>
              <State of={change.to}>{change.phase ? `${change.to}: ${change.phase}` : change.to}</State>
            </td>
            <td>{change.actor}</td>
            <td>{change.reason ?? <span className={ui.muted}>none</span>}</td>
            <td>
              <Link to={`/events?open=${change.eventPosition}`}>{formatNumber(change.eventPosition)}</Link>
            </td>
            <td>
              <Time at={change.at} />
            </td>
          </tr>
        ))}
      </Table>
      <ShowMore list={list} what="changes" count={data.changes.length} />
    </>
  );
};

const NewConversation = ({ agent }: { readonly agent: Agent }) => {
  const { run, isBusy, problem } = useAct();
  const [text, setText] = useState('');
  const start = async (): Promise<void> => {
    const sessionId = await startConversation(agent.id, text);
    navigate(`/sessions/${sessionId}`);
  };
  return (
    <form
      className={css.stack}
      onSubmit={(event) => {
        event.preventDefault();
        run(start);
      }}
    >
      {problem && <ProblemBox problem={problem} />}
      <Field label={`Message to ${agent.name}`}>
        {(props) => (
          <textarea {...props} rows={3} value={text} onChange={(event) => setText(event.target.value)} />
        )}
      </Field>
      <div>
        <ActButton
          permission="sessions:write"
          type="submit"
          look="primary"
          icon="send"
          isOff={isBusy || text.trim() === '' || agent.state === 'terminated'}
        >
          Start a conversation
        </ActButton>
      </div>
    </form>
  );
};

export const AgentPage = ({ params }: PageProps) => {
  const id = params['id'] ?? '';
  const act = useAct();
  const [isAsked, setAsked] = useState(false);
  const { data: agent, problem, refresh } = useRead('getAgent', { params: { id } }, { changesOn: isOf(id) });
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!agent) return <Loading what={id} />;
  return (
    <>
      <PageHead
        title={agent.name}
        tabTitle={`${agent.state} · ${agent.name} · Agents`}
        actions={<Controls agent={agent} act={act} ask={() => setAsked(true)} />}
      >
        <AgentState agent={agent} />
      </PageHead>
      {act.problem && <ProblemBox problem={act.problem} />}
      <div className={css.grid}>
        <Panel
          title="Definition"
          isPadded
          className={css.half}
          actions={
            <CopyRecord
              noun="agent"
              json={`/agents/${encodeURIComponent(id)}`}
              command={`antiphon agent get ${quoteWord(id)}`}
            />
          }
        >
          <Definition agent={agent} />
        </Panel>
        <Panel title="New conversation" isPadded className={css.half}>
          <NewConversation agent={agent} />
        </Panel>
        <Panel title="Sessions">
          <SessionTable
            filter={{ agent: id }}
            empty={
              <Empty title="No session yet">
                <p>Send the agent a message, and its conversation appears here.</p>
              </Empty>
            }
          />
        </Panel>
        <Panel title="History">
          <History id={id} />
        </Panel>
      </div>
      {isAsked && <TerminateDialog agent={agent} onClose={() => setAsked(false)} />}
    </>
  );
};
