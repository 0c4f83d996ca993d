import type { RouteReply, RouteRequest } from '@antiphon/client';
import type { ReactNode } from 'react';
import { Link } from '../../data/router.js';
import { isAbout } from '../../data/event-pages.js';
import { useList } from '../../data/use-list.js';
import { formatNumber, formatUsd, shortId } from '../../ui/format.js';
import { css as ui, Loading, ProblemBox, State, Table, Time, numberColumn } from '../../ui/ui.js';
import { ShowMore } from '../show-more.js';
import { VisibleText } from '../../ui/visible-text.js';
import css from '../pages.module.css';

type Session = RouteReply<'listSessions'>['sessions'][number];

const WORDS = { idle: 'idle', working: 'answers', waiting: 'waits for a decision' } as const;

const Row = ({ session }: { readonly session: Session }) => (
  <tr>
    <td>
      <Link to={`/sessions/${session.id}`} className={css.name}>
        <VisibleText text={session.title ?? shortId(session.id)} />
      </Link>
      <div className={ui.mono}>{session.key}</div>
    </td>
    <td>
      <State of={session.state} tone={session.state === 'waiting' ? 'warn' : undefined}>
        {WORDS[session.state]}
      </State>
    </td>
    <td>
      <Link to={`/agents/${encodeURIComponent(session.agentId)}`}>{session.agentId}</Link>
    </td>
    <td data-end="">{formatNumber(session.turns)}</td>
    <td data-end="">{session.cost === null ? '' : formatUsd(session.cost.microUsd)}</td>
    <td>{session.lastAt && <Time at={session.lastAt} />}</td>
  </tr>
);

const PAGE = 100;

/** Filters of the list, by their names in the API. */
export type SessionFilter = Pick<
  NonNullable<RouteRequest<'listSessions'>['query']>,
  'agent' | 'channel' | 'state' | 'text'
>;

interface SessionTableProps {
  readonly filter: SessionFilter;
  readonly empty: ReactNode;
}

/** Lists sessions, the one with the newest activity first. */
export const SessionTable = ({ filter, empty }: SessionTableProps) => {
  const list = useList(
    'listSessions',
    { query: { limit: PAGE, ...filter } },
    { changesOn: isAbout('session') },
  );
  const { data, problem, refresh } = list;
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="sessions" />;
  if (data.sessions.length === 0) return empty;
  return (
    <>
      <Table
        label="Sessions"
        columns={['Session', 'State', 'Agent', numberColumn('Turns'), numberColumn('Cost'), 'Last activity']}
      >
        {data.sessions.map((session) => (
          <Row key={session.id} session={session} />
        ))}
      </Table>
      <ShowMore list={list} what="sessions" count={data.sessions.length} />
    </>
  );
};
