import type { RouteReply } from '@antiphon/client';
import { useEffect, useState } from 'react';
import { PageHead } from '../app/page-head.js';
import { Link, setParams, useParam } from '../app/router.js';
import { isAbout } from '../data/event-pages.js';
import { client } from '../data/gateway.js';
import { useFetched, useRead } from '../data/use-read.js';
import { formatNumber } from '../ui/format.js';
import { css as ui, Empty, Loading, Panel, ProblemBox, State, Table, Time, numberColumn } from '../ui/ui.js';
import { VisibleText } from '../ui/visible-text.js';
import css from './pages.module.css';

type Entry = RouteReply<'queryMemory'>['entries'][number];

const Source = ({ id }: { readonly id: string }) => {
  const { data, problem } = useFetched(`memory ${id}`, (signal) =>
    client.http.recallMemory({ params: { memoryId: id }, signal }),
  );
  if (problem) return <ProblemBox problem={problem} />;
  if (!data) return <Loading what="the message" />;
  if (!data.source) return <p className={ui.muted}>The message is archived.</p>;
  return (
    <>
      <p>
        “<VisibleText text={data.source.content} />”
      </p>
      <Link to={`/sessions/${data.source.sessionId}`}>Open its session</Link>
    </>
  );
};

const Row = ({ entry }: { readonly entry: Entry }) => {
  const [isOpen, setOpen] = useState(false);
  return (
    <tr>
      <td>
        <VisibleText text={entry.subject} />
      </td>
      <td>
        <span className={ui.muted}>
          <VisibleText text={entry.predicate} />:
        </span>{' '}
        <strong>
          <VisibleText text={entry.object} />
        </strong>
        <details onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary className={ui.muted}>the message it was learned from</summary>
          {isOpen && <Source id={entry.memoryId} />}
        </details>
      </td>
      <td data-end="">{Math.round(entry.confidence * 100)} %</td>
      <td>
        <Time at={entry.learnedAt} />
      </td>
      <td>
        {entry.supersededAt === null ? (
          <State of="ok">believed</State>
        ) : (
          <State of="expired">
            replaced <Time at={entry.supersededAt} />
          </State>
        )}
      </td>
      <td data-end="">
        {entry.position !== null && (
          <Link to={`/events?open=${entry.position}`}>{formatNumber(entry.position)}</Link>
        )}
      </td>
    </tr>
  );
};

const Entries = ({
  agent,
  text,
  isAll,
}: {
  readonly agent: string;
  readonly text: string;
  readonly isAll: boolean;
}) => {
  const query = {
    agent,
    limit: 100,
    ...(text ? { query: text } : {}),
    ...(isAll ? { superseded: 'true' } : {}),
  };
  const { data, problem, refresh } = useRead(
    'queryMemory',
    { query },
    { changesOn: isAbout('memory', 'session') },
  );
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="memory" />;
  if (data.entries.length === 0)
    return (
      <Empty title={`${agent} has learned nothing${text ? ' that matches' : ' yet'}`}>
        <p>Facts are learned from messages. A message such as “My name is Alice” teaches one.</p>
      </Empty>
    );
  return (
    <Table
      label="Entries"
      columns={['About', 'Fact', numberColumn('Confidence'), 'Learned', 'State', numberColumn('Event')]}
    >
      {data.entries.map((entry) => (
        <Row key={entry.memoryId} entry={entry} />
      ))}
    </Table>
  );
};

const TYPING_MS = 350;

const Search = ({ value }: { readonly value: string }) => {
  const [text, setText] = useState(value);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => setParams({ query: text.trim() }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, value]);
  return (
    <label>
      Words
      <input type="search" value={text} placeholder="any" onChange={(event) => setText(event.target.value)} />
    </label>
  );
};

export const Memory = () => {
  const chosen = useParam('agent');
  const text = useParam('query');
  const isAll = useParam('replaced') !== '';
  const { data, problem, refresh } = useRead('listAgents', {}, { changesOn: isAbout('agent') });
  const agents = data?.agents ?? [];
  const agent = chosen || (agents.find(({ isDefault }) => isDefault) ?? agents[0])?.id;
  return (
    <>
      <PageHead title="Memory" question="What does this agent believe, since when, and from which event?" />
      <div className={css.filters}>
        <label>
          Agent
          <select value={agent ?? ''} onChange={(event) => setParams({ agent: event.target.value })}>
            {agents.map(({ id }) => (
              <option key={id}>{id}</option>
            ))}
          </select>
        </label>
        <Search value={text} />
        <label>
          Replaced facts
          <select value={isAll ? '1' : ''} onChange={(event) => setParams({ replaced: event.target.value })}>
            <option value="">hide</option>
            <option value="1">show</option>
          </select>
        </label>
      </div>
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      <Panel title="Facts, newest first">
        {agent ? <Entries agent={agent} text={text} isAll={isAll} /> : <Loading what="agents" />}
      </Panel>
    </>
  );
};
