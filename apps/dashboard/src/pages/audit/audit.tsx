import type { RouteReply } from '@antiphon/client';
import { PageHead } from '../../app/page-head.js';
import { Link, usePosition } from '../../data/router.js';
import { isAbout } from '../../data/event-pages.js';
import { head } from '../../data/live-log.js';
import { useStore } from '../../data/store.js';
import { useRead } from '../../data/use-read.js';
import { countOf, formatNumber } from '../../ui/format.js';
import { CopyRecord } from '../../ui/copy-record.js';
import { PresentMark } from '../../ui/present-mark.js';
import { VisibleText } from '../../ui/visible-text.js';
import { CopyButton, css as ui, Empty, Loading, Panel, ProblemBox, State, Table, Time } from '../../ui/ui.js';
import css from '../pages.module.css';
import { DeadLetters } from './dead-letters.js';
import { Archives, Backups } from './kept-copies.js';
import { Projections, Roots } from './log-state.js';

const COMMANDS: readonly (readonly [string, string])[] = [
  [
    'antiphon audit --live --record',
    'Checks the whole log against every rule, and NATS and Temporal against the log. Records the result for this page.',
  ],
  ['antiphon events prove EVENT_ID --out proof.json', 'Writes a proof of one event that verifies offline.'],
  ['antiphon events verify proof.json', 'Verifies such a proof without this installation.'],
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

const Summary = ({ audit }: { readonly audit: Recorded }) => {
  const last = useStore(head) ?? 0;
  const newer = Math.max(0, (usePosition() ?? last) - audit.headPosition);
  return (
    <p className={css.pad}>
      <State of={audit.ok ? 'ok' : 'failed'}>{audit.ok ? 'everything holds' : 'a rule is broken'}</State>{' '}
      {countOf(audit.events, 'event')} up to position {formatNumber(audit.headPosition)},{' '}
      {audit.signing ?? 'signatures not checked'}
      {audit.isLive ? ', with NATS and Temporal' : ''}; recorded <Time at={audit.recordedAt} /> by{' '}
      {audit.recordedBy}
      {audit.proof === undefined ? ' (unverified: no key signed this record)' : ''}.{' '}
      {newer > 0 && `${countOf(newer, 'event')} came after it.`}
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
};

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
        <p>
          Run <code className={ui.mono}>antiphon audit --record</code> in a terminal.
        </p>
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
              {formatNumber(checked)} {checked === 1 ? counts.replace(/s$/, '') : counts}
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

interface CopyOfNowProps {
  readonly noun: string;
  readonly json: string;
  readonly command: string;
}

/** Copies a list that has no past. */
const CopyOfNow = (props: CopyOfNowProps) => (
  <>
    <PresentMark />
    <CopyRecord {...props} isOfPosition={false} />
  </>
);

export const Audit = () => (
  <>
    <PageHead title="Audit" question="Can I trust the log?" />
    <div className={css.grid}>
      <Panel
        title="Last audit"
        actions={
          <CopyRecord {...{ noun: 'audit', json: '/audits?limit=1', command: 'antiphon audits --limit 1' }} />
        }
      >
        <LastAudit />
      </Panel>
      <Panel title="Signed roots" className={css.half} actions={<PresentMark />}>
        <Roots />
      </Panel>
      <Panel title="Head of the log" className={css.half}>
        <LastAppend />
      </Panel>
      <Panel
        title="Dead letters"
        actions={<CopyOfNow noun="dead letters" json="/dead-letters" command="antiphon dlq list" />}
      >
        <DeadLetters />
      </Panel>
      <Panel title="Read models" className={css.half} actions={<PresentMark />}>
        <Projections />
      </Panel>
      <Panel title="Check it yourself" className={css.half}>
        <Commands />
      </Panel>
      <Panel
        title="Archives"
        className={css.half}
        actions={<CopyOfNow noun="archives" json="/archives" command="antiphon events archives" />}
      >
        <Archives />
      </Panel>
      <Panel
        title="Backups"
        className={css.half}
        actions={<CopyRecord {...{ noun: 'backups', json: '/backups', command: 'antiphon backups' }} />}
      >
        <Backups />
      </Panel>
    </div>
  </>
);
