import type { RouteReply, RouteRequest } from '@antiphon/client';
import type { ReactNode } from 'react';
import { Link } from '../../data/router.js';
import { isAbout } from '../../data/event-pages.js';
import { useList } from '../../data/use-list.js';
import { formatNumber, formatUsd, shortId } from '../../ui/format.js';
import { Loading, ProblemBox, State, Table, Time, numberColumn } from '../../ui/ui.js';
import { ShowMore } from '../show-more.js';
import { VisibleText } from '../../ui/visible-text.js';
import css from '../pages.module.css';

type Session = RouteReply<'listSessions'>['sessions'][number];

const WORDS = { idle: 'idle', working: 'answers', waiting: 'waits for a decision' } as const;

interface RowProps {
  readonly session: Session;
  /** True for a session of a run or a task that has several. */
  readonly isOfGroup: boolean;
}

const Row = ({ session, isOfGroup }: RowProps) => (
  <tr>
    <td className={isOfGroup ? css.ofGroup : undefined}>
      <Link to={`/sessions/${session.id}`} className={css.name}>
        <VisibleText text={session.chat?.name ?? session.title ?? shortId(session.id)} />
      </Link>
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

/** Names of the channels whose sessions belong to something else, with the page of it. */
const OWNERS: Readonly<Record<string, readonly [string, string]>> = {
  run: ['Run', '/runs/'],
  task: ['Task', '/tasks/'],
};

interface Group {
  readonly owner: { readonly title: string; readonly to: string; readonly id: string } | null;
  readonly sessions: Session[];
}

const ownerOf = ({ key, channel }: Session): Group['owner'] => {
  const [title, page] = OWNERS[channel] ?? [];
  const id = key.split(':')[2];
  return title === undefined || page === undefined || !id ? null : { title, to: page + id, id };
};

/** Joins sessions of one run or task that follow one another in the list. */
const groupSessions = (sessions: readonly Session[]): readonly Group[] => {
  const groups: Group[] = [];
  for (const session of sessions) {
    const owner = ownerOf(session);
    const last = groups.at(-1);
    if (owner && last?.owner?.to === owner.to) last.sessions.push(session);
    else groups.push({ owner, sessions: [session] });
  }
  return groups;
};

const GroupRows = ({ owner, sessions }: Group) => {
  const isGroup = owner !== null && sessions.length > 1;
  return (
    <>
      {isGroup && (
        <tr>
          <td colSpan={6}>
            {owner.title} <Link to={owner.to}>{shortId(owner.id)}</Link> · {sessions.length} sessions
          </td>
        </tr>
      )}
      {sessions.map((session) => (
        <Row key={session.id} session={session} isOfGroup={isGroup} />
      ))}
    </>
  );
};

const PAGE = 100;

/** Filters of the list, by their names in the API. */
export type SessionFilter = Pick<
  NonNullable<RouteRequest<'listSessions'>['query']>,
  'agent' | 'agentPart' | 'channel' | 'q' | 'since' | 'state' | 'text'
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
        {groupSessions(data.sessions).map((group) => (
          <GroupRows key={group.sessions[0]?.id} {...group} />
        ))}
      </Table>
      <ShowMore list={list} what="sessions" count={data.sessions.length} />
    </>
  );
};
