import type { LogEvent } from '@antiphon/client';
import { memo, useEffect, useRef, useState } from 'react';
import { PageHead } from '../../app/page-head.js';
import { setParams, useAddress, useParam, usePosition } from '../../data/router.js';
import { useAct } from '../../data/act.js';
import { summaryOf } from '../../data/event-pages.js';
import { useMedia } from '../../data/use-media.js';
import { download } from '../../ui/download.js';
import { countOf, formatNumber, shortId } from '../../ui/format.js';
import { Button, css as ui, Empty, Loading, Panel, ProblemBox, State, Time } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { VirtualRows } from '../../ui/virtual-rows.js';
import { EventDetail } from './event-detail.js';
import { FilterBar } from './event-filters.js';
import { filtersOf, type Filters } from './event-query.js';
import { readWhole, useEventList, type EventList } from './use-event-list.js';
import css from './events.module.css';

/** Height of a row. On a narrow screen it has two lines. */
const ROW_PX = 34;
const TALL_ROW_PX = 52;

const idOf = ({ streamId, category }: LogEvent): string => streamId.slice(category.length + 1);

const aboutOf = (event: LogEvent): string => summaryOf(event) || `${event.category} ${shortId(idOf(event))}`;

const Row = memo(({ event, isOpen }: { readonly event: LogEvent; readonly isOpen: boolean }) => (
  <>
    <span role="cell" className={ui.mono}>
      {formatNumber(event.position)}
    </span>
    <span role="cell" data-tip={event.severity === 'info' ? undefined : `${event.type} ${event.severity}`}>
      <button
        type="button"
        className={css.type}
        // The arrow keys of the list reach it.
        tabIndex={-1}
        aria-current={isOpen ? 'true' : undefined}
        onClick={() => setParams({ open: event.position }, {})}
      >
        {event.type}
      </button>{' '}
      {event.severity !== 'info' && <State of={event.severity} />}
    </span>
    <span role="cell" className={ui.muted} data-tip={`${aboutOf(event)} · ${event.streamId}`}>
      <VisibleText text={aboutOf(event)} />
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

/** Reads newer events that were dropped, once they are in view. Returns what follows the view. */
const useDropped = ({ dropped, loadNewer }: EventList): ((first: number) => void) => {
  const shown = useRef(0);
  const readDropped = (): void => {
    if (shown.current < dropped) loadNewer();
  };
  // A page may not reach the first row in view: then the next one is read.
  useEffect(readDropped);
  return (first) => {
    shown.current = first;
    readDropped();
  };
};

export const EventListPage = () => {
  const { search } = useAddress();
  const filters = filtersOf(search);
  const at = usePosition();
  const opened = Number(useParam('open'));
  const [isPaused, setPaused] = useState(false);
  const isNarrow = useMedia('(width < 40rem)');
  const list = useEventList(filters, at, isPaused);
  const { events, hasOlder, dropped, isLoading, problem, waiting, loadOlder } = list;
  const onView = useDropped(list);
  return (
    <>
      <PageHead title="Events" question="What happened, in order?" />
      <FilterBar filters={filters} />
      {problem && <ProblemBox problem={problem} />}
      <div className={css.layout} data-open={opened > 0 ? '' : undefined}>
        <Panel
          title={`${countOf(dropped + events.length, 'event')}${hasOlder ? ', older ones follow' : ''}`}
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
              count={dropped + events.length}
              rowHeight={isNarrow ? TALL_ROW_PX : ROW_PX}
              columns={['Position', 'Type', 'About', 'When']}
              onEnd={loadOlder}
              onView={onView}
              keyOf={(index) => events[index - dropped]?.position ?? -index}
              row={(index) => {
                const event = events[index - dropped];
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
