import type { LogEvent } from '@antiphon/client';
import { Link, setParams } from '../../app/router.js';
import { pageOf } from '../../data/event-pages.js';
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

const Facts = ({ event }: { readonly event: LogEvent }) => {
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
          <dd className={ui.mono}>{cause}</dd>
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

const Opened = ({ event }: { readonly event: LogEvent }) => (
  <div className={css.detail}>
    <Facts event={event} />
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
  const { data, problem, isLoading } = useFetched(`event ${position}`, (signal) => readOne(position, signal));
  return (
    <Panel
      title={data ? `${formatNumber(position)} · ${data.type}` : `Event ${formatNumber(position)}`}
      actions={
        <>
          <IconButton
            icon="previous"
            label="Event before it"
            onClick={() => setParams({ open: position - 1 })}
          />
          <IconButton icon="next" label="Event after it" onClick={() => setParams({ open: position + 1 })} />
          <IconButton icon="close" label="Close the event" onClick={() => setParams({ open: null })} />
        </>
      }
    >
      {problem && <ProblemBox problem={problem} />}
      {isLoading && <Loading what="the event" />}
      {data === null && (
        <Empty title="No event at this position">
          <p>It belongs to another workspace, is archived, or does not exist yet.</p>
        </Empty>
      )}
      {data && <Opened event={data} />}
    </Panel>
  );
};
