import type { RouteReply } from '@antiphon/client';
import { PageHead } from '../app/page-head.js';
import { Link } from '../app/router.js';
import { isAbout } from '../data/event-pages.js';
import { head } from '../data/live-log.js';
import { useStore } from '../data/store.js';
import { useRead } from '../data/use-read.js';
import { countOf, formatNumber } from '../ui/format.js';
import { VisibleText } from '../ui/visible-text.js';
import { CopyButton, css as ui, Empty, Loading, Panel, ProblemBox, State, Table, Time } from '../ui/ui.js';
import css from './pages.module.css';

type Health = RouteReply<'health'>;

interface MemoryFacts {
  readonly logRoots?: {
    readonly signs: boolean;
    readonly position: number | null;
    readonly refusal: string | null;
  };
  readonly archiver?: { readonly archives: boolean };
  readonly relay?: { readonly leading: boolean };
}

const factsOf = (health: Health): MemoryFacts => (health.services['memory']?.facts ?? {}) as MemoryFacts;

const Roots = ({ health }: { readonly health: Health }) => {
  const last = useStore(head);
  const { logRoots } = factsOf(health);
  if (!logRoots)
    return <p className={css.pad}>The memory service does not respond, so the roots are unknown.</p>;
  const { signs, position, refusal } = logRoots;
  const behind = last === null || position === null ? null : Math.max(0, last - position);
  return (
    <dl className={`${ui.facts} ${css.pad}`}>
      <dt>Signing</dt>
      <dd>
        {signs ? (
          <State of="ok">signs roots</State>
        ) : (
          <State of="warning">unsigned: no key is configured</State>
        )}
      </dd>
      <dt>Last signed root</dt>
      <dd>{position === null || position === 0 ? 'none yet' : `over event ${formatNumber(position)}`}</dd>
      <dt>Not covered yet</dt>
      <dd>
        {behind === null ? 'unknown' : countOf(behind, 'event')}
        {signs &&
          behind !== null &&
          behind > 0 &&
          ', which the next root covers: one a minute, unless the service is configured otherwise'}
      </dd>
      {refusal && (
        <>
          <dt>Refused</dt>
          <dd>{refusal}</dd>
        </>
      )}
    </dl>
  );
};

const positionOf = (detail: string | undefined): number | null => {
  const found = /^position (\d+)/.exec(detail ?? '')?.[1];
  return found === undefined ? null : Number(found);
};

const ReadModels = ({ health }: { readonly health: Health }) => {
  const last = useStore(head);
  const checks = Object.entries(health.services).flatMap(([service, { checks = [] }]) =>
    checks.filter(({ name }) => name === 'projection').map((check) => ({ service, ...check })),
  );
  return (
    <ul className={css.list}>
      {checks.map(({ service, healthy, detail }) => {
        const position = positionOf(detail);
        const lag = last === null || position === null ? null : Math.max(0, last - position);
        return (
          <li key={service}>
            <span className={css.grow}>read models of {service}</span>
            <span className={css.end}>{lag === null ? detail : `${formatNumber(lag)} events behind`}</span>
            <State of={healthy ? 'ok' : 'down'} />
          </li>
        );
      })}
      <li>
        <span className={css.grow}>delivery of events to NATS</span>
        <State of={factsOf(health).relay ? 'ok' : 'unknown'} />
      </li>
      <li>
        <span className={css.grow}>archives</span>
        <State of="info">
          {factsOf(health).archiver?.archives ? 'old events are archived' : 'all events are here'}
        </State>
      </li>
    </ul>
  );
};

const COMMANDS: readonly (readonly [string, string])[] = [
  [
    'antiphon audit --live --record',
    'Checks the whole log against every rule, and NATS and Temporal against the log. Records the result for this page.',
  ],
  ['antiphon events prove EVENT_ID --out proof.json', 'Writes a proof of one event that verifies offline.'],
  ['antiphon dlq list', 'Lists messages that no consumer could handle; `dlq replay` sends them again.'],
  ['antiphon projections list', 'Lists the read models with their positions.'],
];

const LastAppend = () => {
  const { data, problem } = useRead(
    'readEvents',
    { query: { order: 'desc', limit: 1 } },
    { changesOn: isAbout('session', 'agent', 'run', 'budget') },
  );
  const event = data?.events[0];
  if (problem) return <ProblemBox problem={problem} />;
  if (!event) return <Loading what="the last event" />;
  return (
    <dl className={`${ui.facts} ${css.pad}`}>
      <dt>Newest event</dt>
      <dd>
        <Link to={`/events?open=${event.position}`}>
          {formatNumber(event.position)} {event.type}
        </Link>
      </dd>
      <dt>Hash</dt>
      <dd className={ui.mono}>{event.hash}</dd>
      <dt>Recorded</dt>
      <dd>
        <Time at={event.recordedAt} isExact />
      </dd>
    </dl>
  );
};

type Recorded = RouteReply<'listAudits'>['audits'][number];

const Summary = ({ audit }: { readonly audit: Recorded }) => (
  <p className={css.pad}>
    <State of={audit.ok ? 'ok' : 'failed'}>{audit.ok ? 'everything holds' : 'a rule is broken'}</State>{' '}
    {countOf(audit.events, 'event')} up to position {formatNumber(audit.headPosition)},{' '}
    {audit.signing ?? 'signatures not checked'}
    {audit.isLive ? ', with NATS and Temporal' : ''}; recorded <Time at={audit.recordedAt} /> by{' '}
    {audit.recordedBy}.
    {audit.first !== null && (
      <>
        {' '}
        First finding: <VisibleText text={`${audit.first.check}: ${audit.first.message}`} />
        {audit.first.position !== null && (
          <>
            {' '}
            at{' '}
            <Link to={`/events?open=${audit.first.position}`}>
              event {formatNumber(audit.first.position)}
            </Link>
          </>
        )}
      </>
    )}
  </p>
);

const LastAudit = () => {
  const { data, problem, refresh } = useRead(
    'listAudits',
    { query: { limit: 1 } },
    { changesOn: isAbout('workspace') },
  );
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="the last audit" />;
  const audit = data.audits[0];
  if (!audit)
    return (
      <Empty title="No audit has been recorded yet">
        Run <code className={ui.mono}>antiphon audit --record</code> in a terminal.
      </Empty>
    );
  return (
    <>
      <Summary audit={audit} />
      <Table label="Checks of the last audit" columns={['Check', 'Rule', 'Checked', 'Result']}>
        {audit.checks.map(({ name, about, counts, checked, violations, open }) => (
          <tr key={name}>
            <td className={ui.mono}>{name}</td>
            <td>{about}</td>
            <td>
              {formatNumber(checked)} {counts}
              {open > 0 && `, ${formatNumber(open)} open`}
            </td>
            <td>
              {violations === 0 ? <State of="ok" /> : <State of="failed">{`${violations} broken`}</State>}
            </td>
          </tr>
        ))}
      </Table>
    </>
  );
};

const Commands = () => (
  <ul className={css.list}>
    {COMMANDS.map(([command, text]) => (
      <li key={command} className={css.command}>
        <code className={ui.mono}>{command}</code>
        <CopyButton text={command} label={`Copy ${command}`} />
        <span className={ui.muted}>{text}</span>
      </li>
    ))}
  </ul>
);

export const Audit = () => {
  const { data, problem, refresh } = useRead('health', {}, { changesOn: () => true, hasPast: false });
  return (
    <>
      <PageHead title="Audit" question="Can I trust the log?" />
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      {!data && !problem && <Loading what="the state of the log" />}
      {data && (
        <div className={css.grid}>
          <Panel title="Last audit">
            <LastAudit />
          </Panel>
          <Panel title="Signed roots" className={css.half}>
            <Roots health={data} />
          </Panel>
          <Panel title="Head of the log" className={css.half}>
            <LastAppend />
          </Panel>
          <Panel title="What follows the log" className={css.half}>
            <ReadModels health={data} />
          </Panel>
          <Panel title="Check it yourself" className={css.half}>
            <Commands />
          </Panel>
        </div>
      )}
    </>
  );
};
