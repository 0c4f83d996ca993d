import { useState, type ReactNode } from 'react';
import { PageHead } from '../../app/page-head.js';
import type { PageProps } from '../../app/pages.js';
import { Link, useParam } from '../../data/router.js';
import { useLiveAgents, useLiveState } from '../../data/agent-live.js';
import { useAct, type Act } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { useList } from '../../data/use-list.js';
import { useRead } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { ConfirmDialog } from '../../ui/confirm-dialog.js';
import { formatNumber } from '../../ui/format.js';
import { ShowMore } from '../show-more.js';
import { css as ui, Empty, Field, Loading, Panel, ProblemBox, State, Table, Time } from '../../ui/ui.js';
import { SessionTable } from '../session/session-table.js';
import { AgentState, type Agent } from './agent-card.js';
import { DefinitionPanel } from './definition.js';
import { AgentCharts } from './agent-charts.js';
import { AgentNow } from './agent-now.js';
import { AgentInbox, AgentMemory, AgentMoney, AgentTasks } from './agent-work.js';
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

interface Tab {
  readonly name: string;
  readonly title: string;
  readonly view: (props: { readonly agent: Agent; readonly refresh: () => void }) => ReactNode;
}

const TABS: readonly [Tab, ...Tab[]] = [
  { name: 'now', title: 'Now', view: ({ agent }) => <AgentNow agent={agent} /> },
  {
    ...{ name: 'chats', title: 'Chats' },
    view: ({ agent }) => (
      <Panel title="Sessions">
        <SessionTable
          filter={{ agent: agent.id }}
          empty={
            <Empty title="No session yet">
              <p>Send the agent a message, and its conversation appears here.</p>
            </Empty>
          }
        />
      </Panel>
    ),
  },
  {
    ...{ name: 'tasks', title: 'Tasks' },
    view: ({ agent }) => (
      <Panel title="Tasks, newest first">
        <AgentTasks agentId={agent.id} />
      </Panel>
    ),
  },
  {
    ...{ name: 'messages', title: 'Messages' },
    view: ({ agent }) => (
      <Panel title="Messages, newest first">
        <AgentInbox agentId={agent.id} />
      </Panel>
    ),
  },
  { name: 'metrics', title: 'Metrics', view: ({ agent }) => <AgentCharts agentId={agent.id} /> },
  {
    ...{ name: 'memory', title: 'Memory' },
    view: ({ agent }) => (
      <Panel title="Facts, newest first">
        <AgentMemory agentId={agent.id} />
      </Panel>
    ),
  },
  { name: 'money', title: 'Money', view: ({ agent }) => <AgentMoney agentId={agent.id} /> },
  {
    ...{ name: 'definition', title: 'Definition' },
    view: ({ agent, refresh }) => <DefinitionPanel agent={agent} onChanged={refresh} />,
  },
  {
    ...{ name: 'history', title: 'History' },
    view: ({ agent }) => (
      <Panel title="Changes of state, newest first">
        <History id={agent.id} />
      </Panel>
    ),
  },
];

const TabBar = ({ id, current }: { readonly id: string; readonly current: Tab }) => (
  <nav className={css.tabs} aria-label="Parts of the agent">
    {TABS.map(({ name, title }) => (
      <Link
        key={name}
        to={`/agents/${encodeURIComponent(id)}${name === 'now' ? '' : `?tab=${name}`}`}
        aria-current={name === current.name ? 'page' : undefined}
      >
        {title}
      </Link>
    ))}
  </nav>
);

const Page = ({ agent: read, refresh }: { readonly agent: Agent; readonly refresh: () => void }) => {
  const agent = useLiveState(read);
  const act = useAct();
  const [isAsked, setAsked] = useState(false);
  const wanted = useParam('tab');
  const tab = TABS.find(({ name }) => name === wanted) ?? TABS[0];
  const View = tab.view;
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
      <TabBar id={agent.id} current={tab} />
      <View agent={agent} refresh={refresh} />
      {isAsked && <TerminateDialog agent={agent} onClose={() => setAsked(false)} />}
    </>
  );
};

export const AgentPage = ({ params }: PageProps) => {
  const id = params['id'] ?? '';
  useLiveAgents();
  const { data: agent, problem, refresh } = useRead('getAgent', { params: { id } }, { changesOn: isOf(id) });
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!agent) return <Loading what={id} />;
  return <Page agent={agent} refresh={refresh} />;
};
