import type { ReactNode } from 'react';
import { Link, usePosition } from '../../app/router.js';
import { isAbout } from '../../data/event-pages.js';
import { readSessions, type SessionSummary } from '../../data/sessions.js';
import { useFetched } from '../../data/use-read.js';
import { formatNumber, shortId } from '../../ui/format.js';
import { css as ui, Loading, ProblemBox, State, Table, Time } from '../../ui/ui.js';
import css from '../pages.module.css';

const Row = ({ session }: { readonly session: SessionSummary }) => (
  <tr>
    <td>
      <Link to={`/sessions/${session.id}`} className={css.name}>
        {session.title ?? shortId(session.id)}
      </Link>
      <div className={ui.mono}>{session.key}</div>
    </td>
    <td>
      <State of={session.state} />
    </td>
    <td>
      {session.agentId && (
        <Link to={`/agents/${encodeURIComponent(session.agentId)}`}>{session.agentId}</Link>
      )}
    </td>
    <td data-end="">{formatNumber(session.turns)}</td>
    <td>
      <Time at={session.lastAt} />
    </td>
  </tr>
);

const MAX_ROWS = 200;

/** Lists sessions, the one with the newest turn first. */
export const SessionTable = ({ agent, empty }: { readonly agent?: string; readonly empty: ReactNode }) => {
  const position = usePosition();
  const { data, problem, refresh } = useFetched(
    `sessions ${agent ?? ''} ${position ?? ''}`,
    (signal) => readSessions({ agent, at: position }, signal),
    position === null ? isAbout('session') : undefined,
  );
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="sessions" />;
  if (data.length === 0) return empty;
  return (
    <Table
      label="Sessions"
      columns={['Session', 'State', 'Agent', { name: 'Turns', isNumber: true }, 'Last turn']}
    >
      {data.slice(0, MAX_ROWS).map((session) => (
        <Row key={session.id} session={session} />
      ))}
    </Table>
  );
};
