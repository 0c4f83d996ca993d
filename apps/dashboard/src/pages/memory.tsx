import type { RouteReply } from '@antiphon/client';
import { useEffect, useState } from 'react';
import { PageHead } from '../app/page-head.js';
import { Link, setFilters, setParams, useParam } from '../data/router.js';
import { isAbout } from '../data/event-pages.js';
import { useRead } from '../data/use-read.js';
import { formatNumber } from '../ui/format.js';
import { Button, css as ui, Empty, Loading, Panel, ProblemBox, Table, Time, numberColumn } from '../ui/ui.js';
import { TypedFilter } from '../ui/typed-filter.js';
import { VisibleText } from '../ui/visible-text.js';
import { BelievedState, OpenedEntry } from './memory-entry.js';
import css from './pages.module.css';

type Entry = RouteReply<'queryMemory'>['entries'][number];

const Source = ({ id }: { readonly id: string }) => {
  const { data, problem } = useRead('recallMemory', { params: { memoryId: id } });
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
          {isOpen && (
            <>
              <Source id={entry.memoryId} />{' '}
              <Button look="quiet" onClick={() => setParams({ entry: entry.memoryId }, {})}>
                Show the entry
              </Button>
            </>
          )}
        </details>
      </td>
      <td data-end="">{Math.round(entry.confidence * 100)} %</td>
      <td>
        <Time at={entry.learnedAt} />
      </td>
      <td>
        <BelievedState supersededAt={entry.supersededAt} />
      </td>
      <td data-end="">
        {entry.position !== null && (
          <Link to={`/events?open=${entry.position}`}>{formatNumber(entry.position)}</Link>
        )}
      </td>
    </tr>
  );
};

/** The API returns no more of them, and has no next page. */
const MAX_ENTRIES = 100;

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
    limit: MAX_ENTRIES,
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
    <>
      <Table
        label="Entries"
        columns={['About', 'Fact', numberColumn('Confidence'), 'Learned', 'State', numberColumn('Event')]}
      >
        {data.entries.map((entry) => (
          <Row key={entry.memoryId} entry={entry} />
        ))}
      </Table>
      {data.entries.length >= MAX_ENTRIES && (
        <p className={css.pad}>These are {MAX_ENTRIES} facts at most. Enter words to find others.</p>
      )}
    </>
  );
};

type Agents = RouteReply<'listAgents'>['agents'];

/** A field that takes the id or the name of an agent, and offers those that match. */
const AgentField = ({ agents, value }: { readonly agents: Agents; readonly value: string }) => {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const choose = (given: string): void => {
    setText(given);
    const found = agents.find(({ id, name }) => id === given || name === given);
    if (found && found.id !== value) setFilters({ agent: found.id });
  };
  return (
    <label>
      Agent
      <input
        type="search"
        list="agents-of-memory"
        value={text}
        placeholder="id or name"
        onChange={(event) => choose(event.target.value)}
        onBlur={() => setText(value)}
      />
      <datalist id="agents-of-memory">
        {agents.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </datalist>
    </label>
  );
};

export const Memory = () => {
  const chosen = useParam('agent');
  const text = useParam('query');
  const isAll = useParam('replaced') !== '';
  const opened = useParam('entry');
  const { data, problem, refresh } = useRead('listAgents', {}, { changesOn: isAbout('agent') });
  const agents = data?.agents ?? [];
  const agent = chosen || (agents.find(({ isDefault }) => isDefault) ?? agents[0])?.id;
  return (
    <>
      <PageHead title="Memory" question="What does this agent believe, since when, and from which event?" />
      <div className={css.filters}>
        <AgentField agents={agents} value={agent ?? ''} />
        <TypedFilter name="query" label="Words" value={text} />
        <label>
          Replaced facts
          <select value={isAll ? '1' : ''} onChange={(event) => setFilters({ replaced: event.target.value })}>
            <option value="">hide</option>
            <option value="1">show</option>
          </select>
        </label>
      </div>
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      <div className={css.stack}>
        {opened !== '' && <OpenedEntry id={opened} />}
        <Panel title="Facts, newest first">
          {agent ? <Entries agent={agent} text={text} isAll={isAll} /> : <Loading what="agents" />}
        </Panel>
      </div>
    </>
  );
};
