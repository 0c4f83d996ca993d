import type { LogEvent } from '@antiphon/client';
import { Link, setParams, usePosition } from '../../data/router.js';
import { causesOf, NEAR, type Causes } from '../../data/event-causes.js';
import { pageOf, whyPageOf } from '../../data/event-pages.js';
import { client } from '../../data/gateway.js';
import { useFetched } from '../../data/use-read.js';
import { CopyRecord } from '../../ui/copy-record.js';
import { formatNumber } from '../../ui/format.js';
import { Json } from '../../ui/json.js';
import {
  Button,
  css as ui,
  Empty,
  IconButton,
  Loading,
  Panel,
  ProblemBox,
  State,
  Time,
} from '../../ui/ui.js';
import css from './events.module.css';

const readOne = async (position: number, signal: AbortSignal): Promise<LogEvent | null> => {
  const { events } = await client.http.readEvents({ query: { after: position - 1, limit: 1 }, signal });
  return events.find((event) => event.position === position) ?? null;
};

/** Reads what happened around an event, up to a position if one is given. */
const readCauses = async (event: LogEvent, at: number | null, signal: AbortSignal): Promise<Causes> => {
  const until = at === null ? {} : { at };
  const { position } = event;
  const [before, after] = await Promise.all([
    client.http.readEvents({ query: { at: position, order: 'desc', limit: NEAR }, signal }),
    client.http.readEvents({ query: { after: position, limit: NEAR, ...until }, signal }),
  ]);
  return causesOf(event, before.events, after.events);
};

interface OpenedProps {
  readonly event: LogEvent;
  readonly causes: Causes | undefined;
}

const EventLink = ({ event: { position, type } }: { readonly event: LogEvent }) => (
  <Link to={`/events?open=${position}`}>{`${formatNumber(position)} · ${type}`}</Link>
);

const Effects = ({ causes }: Pick<OpenedProps, 'causes'>) => {
  if (!causes) return <Loading what="its effects" />;
  const { effects, isByRequest } = causes;
  if (effects.length === 0) return <p>None among the {NEAR} events after it.</p>;
  return (
    <>
      {isByRequest && <p>No event names it as its cause. These followed in the same request.</p>}
      <ul className={css.effects} aria-label="Effects">
        {effects.map((event) => (
          <li key={event.position}>
            <EventLink event={event} />
          </li>
        ))}
      </ul>
    </>
  );
};

const Facts = ({ event, causes }: OpenedProps) => {
  const metadata = (event.metadata ?? {}) as Readonly<Record<string, unknown>>;
  const cause = metadata['causationId'];
  const correlation = metadata['correlationId'];
  return (
    <dl className={ui.facts}>
      <dt>Stream</dt>
      <dd>
        <Link to={`/events?stream=${encodeURIComponent(event.streamId)}`}>{event.streamId}</Link>, event{' '}
        {event.streamVersion}
      </dd>
      <dt>Recorded</dt>
      <dd>
        <Time at={event.recordedAt} isExact />
      </dd>
      <dt>Severity</dt>
      <dd>
        <State of={event.severity} />
      </dd>
      <dt>Id</dt>
      <dd className={ui.mono}>{event.eventId}</dd>
      <dt>Hash</dt>
      <dd className={ui.mono}>{event.hash}</dd>
      {typeof cause === 'string' && (
        <>
          <dt>Caused by</dt>
          <dd className={ui.mono}>{causes?.cause ? <EventLink event={causes.cause} /> : cause}</dd>
        </>
      )}
      {typeof correlation === 'string' && (
        <>
          <dt>Request</dt>
          <dd className={ui.mono}>{correlation}</dd>
        </>
      )}
    </dl>
  );
};

const WhyLink = ({ event }: { readonly event: LogEvent }) => {
  const page = whyPageOf(event);
  if (page === null) return null;
  return (
    <Link to={page} className={ui.button}>
      Why
    </Link>
  );
};

const Opened = ({ event, causes }: OpenedProps) => (
  <div className={css.detail}>
    <Facts event={event} causes={causes} />
    <h3>Effects</h3>
    <Effects causes={causes} />
    <h3>Data</h3>
    <Json value={event.data} label="Data of the event" />
    <h3>Metadata</h3>
    <Json value={event.metadata} label="Metadata of the event" />
    <div className={css.actions}>
      <Button icon="clock" onClick={() => setParams({ at: event.position }, {})}>
        Everything as of here
      </Button>
      <Link to={pageOf(event)} className={ui.button}>
        Open its page
      </Link>
      <WhyLink event={event} />
      <CopyRecord
        noun="event"
        page={`/events?open=${event.position}`}
        json={{ value: event }}
        command={`antiphon events show ${event.position}`}
        isOfPosition={false}
      />
    </div>
  </div>
);

/** Shows one event with its bytes, hash and cause. */
export const EventDetail = ({ position }: { readonly position: number }) => {
  const at = usePosition();
  const isLater = at !== null && position > at;
  const isLast = at !== null && position >= at;
  const { data, problem, isLoading } = useFetched(isLater ? null : `event ${position}`, (signal) =>
    readOne(position, signal),
  );
  const { data: causes } = useFetched(data ? `causes ${position} ${at ?? ''}` : null, (signal) =>
    readCauses(data as LogEvent, at, signal),
  );
  return (
    <Panel
      title={data ? `${formatNumber(position)} · ${data.type}` : `Event ${formatNumber(position)}`}
      actions={
        <>
          <IconButton
            icon="previous"
            label="Event before it"
            aria-disabled={position <= 1}
            onClick={() => position > 1 && setParams({ open: isLater ? at : position - 1 })}
          />
          <IconButton
            icon="next"
            label="Event after it"
            aria-disabled={isLast}
            onClick={() => !isLast && setParams({ open: position + 1 })}
          />
          <IconButton icon="close" label="Close the event" onClick={() => setParams({ open: null })} />
        </>
      }
    >
      {problem && <ProblemBox problem={problem} />}
      {isLoading && <Loading what="the event" />}
      {isLater && (
        <Empty title="This event is after the position of the page">
          <p>The page shows the log as of event {formatNumber(at)}.</p>
        </Empty>
      )}
      {data === null && (
        <Empty title="No event at this position">
          <p>It belongs to another workspace, is archived, or does not exist yet.</p>
        </Empty>
      )}
      {data && <Opened event={data} causes={causes} />}
    </Panel>
  );
};
