import type { RouteReply } from '@antiphon/client';
import { Link } from '../data/router.js';
import type { Read } from '../data/use-read.js';
import { css as ui, Loading, ProblemBox, State, Time } from '../ui/ui.js';
import css from './pages.module.css';

type Status = RouteReply<'health'>;

interface Part {
  readonly name: string;
  readonly healthy: boolean;
  readonly note: string | undefined;
  readonly since: string | undefined;
  readonly isService: boolean;
}

/** Names of parts, where the name of the API is a short one. */
const PART_NAMES: Readonly<Record<string, string>> = {
  cells: 'sandbox cells',
  jetstream: 'message streams (JetStream)',
  logRoots: 'signed roots of the log',
  nats: 'messages (NATS)',
  postgresql: 'database (PostgreSQL)',
  projection: 'read models',
  temporal: 'workflows (Temporal)',
};

/** Remedies of parts; those of services are the same. */
const REMEDIES: Readonly<Record<string, string>> = {
  postgresql: 'Repair the database, or free space on its disk. Accepted work waits, new work is refused.',
  nats: 'Repair the server of NATS. Services connect again by themselves.',
  jetstream: 'Repair the server of NATS, or free space on its disk.',
  temporal: 'Repair the server of Temporal. Runs wait for it, and continue.',
  projection: 'Read the logs of the memory service. Read models continue after the fix.',
  logRoots: 'Act on the reason that the page of audits shows.',
};
const OF_SERVICE = 'Read the logs of this service. It is restarted by its supervisor.';

const partsOf = ({ services, engines }: Status): readonly Part[] => [
  ...Object.entries(services).map(([name, { healthy, error, since }]) => ({
    ...{ name, healthy, note: error, since, isService: true },
  })),
  ...Object.entries(engines).map(([name, { healthy, detail, since }]) => ({
    ...{ name, healthy, note: detail, since, isService: false },
  })),
];

const PartLine = ({ part }: { readonly part: Part }) => (
  <li>
    <span className={css.grow}>{PART_NAMES[part.name] ?? part.name}</span>
    {part.note && <span className={css.end}>{part.note}</span>}
    <State of={part.healthy ? 'ok' : 'down'} />
  </li>
);

/** A part that does not work: its reason, since when, and what to do. */
const Failed = ({ part, temporalUi }: { readonly part: Part; readonly temporalUi: string | null }) => (
  <li>
    <div className={css.grow}>
      <strong>{PART_NAMES[part.name] ?? part.name}</strong>{' '}
      {part.since && (
        <span className={ui.muted}>
          since <Time at={part.since} isExact />
        </span>
      )}
      {part.note && <p>{part.note}</p>}
      <p>
        {part.isService ? OF_SERVICE : (REMEDIES[part.name] ?? OF_SERVICE)}{' '}
        {part.name === 'temporal' && temporalUi && <a href={temporalUi}>Open Temporal</a>}
        {part.name === 'logRoots' && <Link to="/audit">Open the audits</Link>}
      </p>
      <p className={ui.muted}>
        Runbook: <code className={ui.mono}>docs/operations.md</code>, “Handle failures”
      </p>
    </div>
    <State of="down" />
  </li>
);

/** Services and engines: one line while all of them work, else those that do not. */
export const Services = ({ status }: { readonly status: Read<Status> }) => {
  const { data, problem, refresh } = status;
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="health" />;
  const parts = partsOf(data);
  const failed = parts.filter(({ healthy }) => !healthy);
  return (
    <>
      {failed.length > 0 && (
        <ul className={css.list} aria-label="Parts that do not work">
          {failed.map((part) => (
            <Failed key={part.name} part={part} temporalUi={data.temporalUi} />
          ))}
        </ul>
      )}
      <details className={css.pad}>
        <summary>
          <State of={failed.length === 0 ? 'ok' : 'degraded'}>
            {`${parts.length - failed.length} of ${parts.length} work`}
          </State>{' '}
          <span className={ui.muted}>details</span>
        </summary>
        <ul className={css.list}>
          {parts.map((part) => (
            <PartLine key={part.name} part={part} />
          ))}
        </ul>
        {data.temporalUi && (
          <p>
            <a href={data.temporalUi}>Open Temporal</a>
          </p>
        )}
      </details>
    </>
  );
};
