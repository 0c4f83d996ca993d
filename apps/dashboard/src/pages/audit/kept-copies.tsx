import type { RouteReply } from '@antiphon/client';
import { Link } from '../../data/router.js';
import { isAbout } from '../../data/event-pages.js';
import { useRead } from '../../data/use-read.js';
import { formatBytes, formatNumber } from '../../ui/format.js';
import { css as ui, Empty, Loading, numberColumn, ProblemBox, State, Table, Time } from '../../ui/ui.js';
import css from '../pages.module.css';

type Archive = RouteReply<'listArchives'>['archives'][number];

const ARCHIVE_STATES = { intact: 'ok', changed: 'failed', missing: 'failed', unknown: 'unknown' } as const;

const ArchiveRow = ({ archive }: { readonly archive: Archive }) => (
  <tr>
    <td className={ui.mono}>{archive.file}</td>
    <td data-end="">{formatNumber(archive.cutPosition)}</td>
    <td data-end="">{formatNumber(archive.events)}</td>
    <td data-end="">{archive.bytes === null ? '' : formatBytes(archive.bytes)}</td>
    <td>
      <State of={ARCHIVE_STATES[archive.state]}>{archive.state}</State>
    </td>
    <td>
      <Time at={archive.archivedAt} />
    </td>
  </tr>
);

/** Files of events that left the log. */
export const Archives = () => {
  const { data, problem, refresh } = useRead('listArchives', { query: {} }, { hasPast: false });
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="archives" />;
  const { archives, requests } = data;
  if (archives.length + requests.length === 0)
    return (
      <Empty title="Every event is in the log">
        <p>
          <code className={ui.mono}>antiphon events archive</code> moves old events to a file with a proof.
        </p>
      </Empty>
    );
  const columns = ['File', ...['Up to event', 'Events', 'Size'].map(numberColumn), 'State', 'Archived'];
  return (
    <>
      {requests.map(({ archiveId, file, refusal }) => (
        <p key={archiveId} className={css.pad}>
          <State of={refusal === null ? 'pending' : 'failed'}>{refusal === null ? 'waits' : 'refused'}</State>{' '}
          {file}
          {refusal !== null && `: ${refusal}`}
        </p>
      ))}
      {archives.length > 0 && (
        <Table label="Archives" columns={columns}>
          {archives.map((archive) => (
            <ArchiveRow key={archive.archiveId} archive={archive} />
          ))}
        </Table>
      )}
    </>
  );
};

const BACKUP_COLUMNS = [
  'Folder',
  numberColumn('Up to event'),
  numberColumn('A restore loses'),
  'Recorded',
  'By',
];

/** Backups that were recorded, and what a restore of each would lose. */
export const Backups = () => {
  const { data, problem, refresh } = useRead(
    'listBackups',
    { query: {} },
    { changesOn: isAbout('workspace') },
  );
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="backups" />;
  const { backups, restores, head } = data;
  return (
    <>
      {restores.map(({ id, phase, folder, beganAt }) => (
        <p key={id} className={css.pad}>
          Restore from <code className={ui.mono}>{folder}</code>: {phase}, began <Time at={beganAt} />
        </p>
      ))}
      {backups.length === 0 ? (
        <Empty title="No backup has been recorded">
          <p>
            <code className={ui.mono}>antiphon backup FOLDER --record</code> makes one and records it here.
          </p>
        </Empty>
      ) : (
        <Table label="Backups" columns={BACKUP_COLUMNS}>
          {backups.map(({ backupId, folder, position, recordedAt, recordedBy, recordPosition }) => (
            <tr key={backupId}>
              <td className={ui.mono}>{folder}</td>
              <td data-end="">{formatNumber(position)}</td>
              <td data-end="">{`${formatNumber(Math.max(0, head - position))} events`}</td>
              <td>
                <Link to={`/events?open=${recordPosition}`}>
                  <Time at={recordedAt} />
                </Link>
              </td>
              <td>{recordedBy}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
};
