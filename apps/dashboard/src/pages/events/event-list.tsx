import type { LogEvent } from '@antiphon/client';
import { memo, useEffect, useState } from 'react';
import { PageHead } from '../../app/page-head.js';
import { setParams, useAddress, useParam, usePosition } from '../../app/router.js';
import { useAct } from '../../data/act.js';
import { summaryOf } from '../../data/event-pages.js';
import { download } from '../../ui/download.js';
import { countOf, formatNumber, shortId } from '../../ui/format.js';
import { Button, css as ui, Empty, Loading, Panel, ProblemBox, State, Time } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { VirtualRows } from '../../ui/virtual-rows.js';
import { EventDetail } from './event-detail.js';
import { filtersOf, FILTERS, type FilterName, type Filters } from './event-query.js';
import { readWhole, useEventList } from './use-event-list.js';
import pages from '../pages.module.css';
import css from './events.module.css';

const ROW_PX = 34;
const TYPING_MS = 350;

const LABELS: Readonly<Record<FilterName, string>> = {
  type: 'Types',
  excludeType: 'Without types',
  category: 'Category',
  agent: 'Agent',
  session: 'Session',
  run: 'Run',
  stream: 'Stream',
  severity: 'Severity',
  text: 'Text',
};
const HINTS: Readonly<Partial<Record<FilterName, string>>> = {
  type: 'TurnFailed, RunFailed',
  excludeType: 'ModelCallStarted',
  category: 'session',
  text: 'in the data',
};
/** Filters that are always shown; the others appear when the URL has them. */
const SHOWN: readonly FilterName[] = ['type', 'excludeType', 'category', 'agent', 'text'];

const FilterInput = ({ name, value }: { readonly name: FilterName; readonly value: string }) => {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => setParams({ [name]: text.trim() }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [name, text, value]);
  return (
    <label>
      {LABELS[name]}
      <input
        type="search"
        value={text}
        placeholder={HINTS[name] ?? 'any'}
        onChange={(event) => setText(event.target.value)}
      />
    </label>
  );
};

const FilterBar = ({ filters }: { readonly filters: Filters }) => (
  <div className={pages.filters} role="search" aria-label="Filters">
    {FILTERS.filter(
      (name) => name !== 'severity' && (SHOWN.includes(name) || filters[name] !== undefined),
    ).map((name) => (
      <FilterInput key={name} name={name} value={filters[name] ?? ''} />
    ))}
    <label>
      Severity
      <select
        value={filters.severity ?? ''}
        onChange={(event) => setParams({ severity: event.target.value })}
      >
        <option value="">any</option>
        <option>info</option>
        <option>warning</option>
        <option>error</option>
      </select>
    </label>
    {Object.keys(filters).length > 0 && (
      <Button onClick={() => setParams(Object.fromEntries(FILTERS.map((name) => [name, null])))}>
        Clear
      </Button>
    )}
  </div>
);

const idOf = ({ streamId, category }: LogEvent): string => streamId.slice(category.length + 1);

const Row = memo(({ event, isOpen }: { readonly event: LogEvent; readonly isOpen: boolean }) => (
  <>
    <span role="cell" className={ui.mono}>
      {formatNumber(event.position)}
    </span>
    <span role="cell">
      <button
        type="button"
        className={css.type}
        aria-current={isOpen ? 'true' : undefined}
        onClick={() => setParams({ open: event.position }, {})}
      >
        {event.type}
      </button>{' '}
      {event.severity !== 'info' && <State of={event.severity} />}
    </span>
    <span role="cell" className={ui.muted} data-tip={event.streamId}>
      <VisibleText text={summaryOf(event) || `${event.category} ${shortId(idOf(event))}`} />
    </span>
    <span role="cell" className={ui.muted}>
      <Time at={event.recordedAt} />
    </span>
  </>
));
Row.displayName = 'Row';

const saveLines = async (filters: Filters, at: number | null): Promise<void> => {
  const events = await readWhole(filters, at);
  const lines = events.map((event) => `${JSON.stringify(event)}\n`);
  download(lines.join(''), 'events.jsonl', 'application/jsonl');
};

interface ToolbarProps {
  readonly isPaused: boolean;
  readonly waiting: number;
  readonly isPast: boolean;
  readonly toggle: () => void;
  readonly save: () => Promise<void>;
}

const Toolbar = ({ isPaused, waiting, isPast, toggle, save }: ToolbarProps) => {
  const { run, isBusy, problem } = useAct();
  return (
    <>
      {!isPast && (
        <Button icon={isPaused ? 'play' : 'pause'} aria-pressed={isPaused} onClick={toggle}>
          {isPaused ? `Follow (${waiting} new)` : 'Pause'}
        </Button>
      )}
      <Button disabled={isBusy} onClick={() => run(save)}>
        {isBusy ? 'Reading …' : 'Save as JSON lines'}
      </Button>
      {problem && <ProblemBox problem={problem} />}
    </>
  );
};

export const EventListPage = () => {
  const { search } = useAddress();
  const filters = filtersOf(search);
  const at = usePosition();
  const opened = Number(useParam('open'));
  const [isPaused, setPaused] = useState(false);
  const list = useEventList(filters, at, isPaused);
  const { events, hasOlder, isLoading, problem, waiting, loadOlder } = list;
  return (
    <>
      <PageHead title="Events" question="What happened, in order?" />
      <FilterBar filters={filters} />
      {problem && <ProblemBox problem={problem} />}
      <div className={css.layout} data-open={opened > 0 ? '' : undefined}>
        <Panel
          title={`${countOf(events.length, 'event')}${hasOlder ? ', older ones follow' : ''}`}
          actions={
            <Toolbar
              isPaused={isPaused}
              waiting={waiting}
              isPast={at !== null}
              toggle={() => setPaused(!isPaused)}
              save={() => saveLines(filters, at)}
            />
          }
        >
          {events.length === 0 && isLoading && <Loading what="events" />}
          {events.length === 0 && !isLoading && !problem && (
            <Empty title="No event matches">
              <p>Clear a filter, or move the position bar.</p>
            </Empty>
          )}
          {events.length > 0 && (
            <VirtualRows
              label="Events, newest first"
              count={events.length}
              rowHeight={ROW_PX}
              columns={['Position', 'Type', 'About', 'When']}
              onEnd={loadOlder}
              keyOf={(index) => events[index]?.position ?? index}
              row={(index) => {
                const event = events[index];
                return event ? <Row event={event} isOpen={event.position === opened} /> : null;
              }}
            />
          )}
        </Panel>
        {opened > 0 && <EventDetail position={opened} />}
      </div>
    </>
  );
};
