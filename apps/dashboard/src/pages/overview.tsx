import type { LogEvent, RouteReply } from '@antiphon/client';
import { PageHead } from '../app/page-head.js';
import { Link, usePosition } from '../data/router.js';
import { isAbout, pageOf, summaryOf } from '../data/event-pages.js';
import { startOfDayBefore } from '../data/day-before.js';
import { useRead, type Read } from '../data/use-read.js';
import { countOf, formatCompact, formatNumber, formatUsd, wordsOfType } from '../ui/format.js';
import { PresentMark } from '../ui/present-mark.js';
import { css as ui, Empty, Loading, Panel, ProblemBox, State, Time, type Tone } from '../ui/ui.js';
import { OverviewAgents } from './agents/overview-agents.js';
import { OverviewRates } from './overview-rates.js';
import { Services } from './services.js';
import css from './pages.module.css';

interface TileProps {
  readonly to: string;
  readonly label: string;
  readonly value: string | undefined;
  readonly note?: string;
  readonly tone?: Tone;
}

export const Tile = ({ to, label, value, note, tone }: TileProps) => (
  <Link to={to} className={css.tile} data-tone={tone}>
    <span>{label}</span>
    <strong>{value ?? '…'}</strong>
    {note && <span>{note}</span>}
  </Link>
);

type Agents = RouteReply<'listAgents'>['agents'];

const countStates = (agents: Agents | undefined): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {};
  for (const { state } of agents ?? []) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
};

const AgentTiles = ({ agents }: { readonly agents: Read<RouteReply<'listAgents'>> }) => {
  const states = countStates(agents.data?.agents);
  const failed = states['error'] ?? 0;
  return (
    <>
      <Tile
        to="/agents?state=error"
        label="Agents in error"
        value={agents.data && String(failed)}
        note={countOf(agents.data?.agents.length ?? 0, 'agent')}
        {...(failed ? { tone: 'bad' } : {})}
      />
      <Tile
        to="/agents?state=working"
        label="Agents at work"
        value={agents.data && String(states['working'] ?? 0)}
        note={`${states['paused'] ?? 0} paused`}
        {...(states['working'] ? { tone: 'busy' } : {})}
      />
    </>
  );
};

/** Returns the number of rows; `50+` for a list that continues. */
const countAtLeast = (rows: number, { nextCursor }: { readonly nextCursor: string | null }): string =>
  `${rows}${nextCursor === null ? '' : '+'}`;

const Tiles = ({ agents }: { readonly agents: Read<RouteReply<'listAgents'>> }) => {
  const approvals = useRead(
    'listApprovals',
    { query: { status: 'pending', limit: 50 } },
    { changesOn: isAbout('session') },
  );
  const runs = useRead(
    'listRuns',
    { query: { status: 'running', limit: 50 } },
    { changesOn: isAbout('run') },
  );
  const budgets = useRead('readBudgets', {}, { changesOn: isAbout('session', 'budget') });
  const day = budgets.data?.scopes.find(({ kind }) => kind === 'day');
  const waiting = approvals.data && countAtLeast(approvals.data.approvals.length, approvals.data);
  return (
    <div className={css.tiles}>
      <Tile
        to="/approvals"
        label="Waiting for a decision"
        value={waiting}
        note={waiting === '0' ? 'nothing waits for you' : 'tool calls'}
        {...(waiting && waiting !== '0' ? { tone: 'warn' } : {})}
      />
      <AgentTiles agents={agents} />
      <Tile
        to="/runs"
        label="Runs in progress"
        value={runs.data && countAtLeast(runs.data.runs.length, runs.data)}
        note="of workflows"
      />
      <Tile
        to="/money"
        label="Spent today"
        value={day && formatUsd(day.settledMicroUsd)}
        note={day ? `${formatCompact(day.settledTokens)} tokens` : 'by model calls'}
      />
    </div>
  );
};

type Status = RouteReply<'health'>;

interface ProviderFact {
  readonly name: string;
  readonly scripted: boolean;
}

/** Offers to connect a model while the default agent answers without one. */
const ConnectBanner = ({ agents, status }: { readonly agents: Agents; readonly status: Status }) => {
  const facts = (status.services['agent']?.facts ?? {}) as { readonly providers?: readonly ProviderFact[] };
  const usual = agents.find(({ isDefault }) => isDefault);
  const isScripted = facts.providers?.some(({ name, scripted }) => scripted && name === usual?.provider);
  if (!isScripted) return null;
  return (
    <Panel title="Connect a model" isPadded>
      <p>
        No model is connected: answers are scripted. Paste the key of a provider, and ask your first question.
      </p>
      <p className={css.links}>
        <Link to="/settings/providers?connect=1" className={`${ui.button} ${ui.primary}`}>
          Connect a model
        </Link>
      </p>
    </Panel>
  );
};

const EventLine = ({ event }: { readonly event: LogEvent }) => (
  <li>
    {event.severity === 'info' ? null : <State of={event.severity} />}
    <span className={css.grow}>
      <Link to={pageOf(event)}>{wordsOfType(event.type)}</Link>{' '}
      <span className={ui.muted}>{summaryOf(event)}</span>
    </span>
    <span className={css.end}>
      {formatNumber(event.position)} · <Time at={event.recordedAt} />
    </span>
  </li>
);

const LINES = 10;

type Events = RouteReply<'readEvents'>;

const Activity = ({ read }: { readonly read: Read<Events> }) => {
  const { data, problem, refresh } = read;
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="events" />;
  return (
    <ul className={css.list}>
      {data.events.map((event) => (
        <EventLine key={event.position} event={event} />
      ))}
    </ul>
  );
};

/** Failures of the day before the newest event that the page shows; in the present, before now. */
const Failures = ({ newest }: { readonly newest: Read<Events> }) => {
  const isPast = usePosition() !== null;
  const since = startOfDayBefore(isPast ? newest.data?.events[0]?.recordedAt : new Date().toISOString());
  const { data, problem, refresh } = useRead(
    'readEvents',
    { query: { severity: 'error', ...(since && { since }), limit: LINES, order: 'desc' } },
    { changesOn: ({ severity }) => severity === 'error', isOff: since === null },
  );
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (since === null && newest.problem) return <ProblemBox problem={newest.problem} />;
  const events = since === null && newest.data ? [] : data?.events;
  if (!events) return <Loading what="failures" />;
  if (events.length === 0)
    return <Empty title={`No failure in the ${isPast ? '24 hours before the position' : 'last 24 hours'}`} />;
  return (
    <ul className={css.list}>
      {events.map((event) => (
        <EventLine key={event.position} event={event} />
      ))}
    </ul>
  );
};

export const Overview = () => {
  const isPast = usePosition() !== null;
  const newest = useRead('readEvents', { query: { order: 'desc', limit: LINES } }, { changesOn: () => true });
  const status = useRead('health', {}, { changesOn: isAbout('agent'), hasPast: false });
  const agents = useRead('listAgents', {}, { changesOn: isAbout('agent', 'session', 'task') });
  const { data } = status;
  const word = data?.status === 'ok' ? 'all services run' : 'degraded';
  return (
    <>
      <PageHead
        title="Overview"
        question="Is anything wrong, or waiting for me, right now?"
        actions={
          data && (
            <>
              <PresentMark />
              <State of={data.status}>{word}</State>
            </>
          )
        }
      />
      <div className={css.stack}>
        {data && agents.data && !isPast && <ConnectBanner agents={agents.data.agents} status={data} />}
        <Tiles agents={agents} />
        <OverviewRates />
        <OverviewAgents read={agents} />
        <div className={css.grid}>
          <Panel
            title={isPast ? 'Failures of the 24 hours before the position' : 'Failures of the last 24 hours'}
            className={css.half}
          >
            <Failures newest={newest} />
          </Panel>
          <Panel
            title="Services and engines"
            className={css.half}
            actions={
              <>
                <PresentMark />
                {data && <span className={css.end}>version {data.version}</span>}
              </>
            }
          >
            <Services status={status} />
          </Panel>
          <Panel title="Latest events">
            <Activity read={newest} />
          </Panel>
        </div>
      </div>
    </>
  );
};
