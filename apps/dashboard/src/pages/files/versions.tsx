import type { RouteReply } from '@antiphon/client';
import { lazy, Suspense, useState } from 'react';
import type { FileEntry } from '../../data/file-tree.js';
import { client } from '../../data/gateway.js';
import { useIdentity } from '../../data/identity.js';
import { Link, setParams, useParam } from '../../data/router.js';
import { useList, type ListRead } from '../../data/use-list.js';
import { ActButton } from '../../ui/act-button.js';
import { ConfirmDialog } from '../../ui/confirm-dialog.js';
import { Button, Id, Loading, Panel, ProblemBox, Table, Time } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { ShowMore } from '../show-more.js';
import { RewindDialog } from './rewind-dialog.js';
import type { ContentPlace } from './use-content.js';
import { changesFiles, useFilePosition } from './use-tree.js';
import pages from '../pages.module.css';
import { css as ui } from '../../ui/ui.js';
import css from './files.module.css';

const VersionDiff = lazy(async () => ({ default: (await import('./version-diff.js')).VersionDiff }));

export type FileChange = RouteReply<'readFileHistory'>['changes'][number];
type History = ListRead<RouteReply<'readFileHistory'>>;

/** Reads the changes of a file, newest first. */
export const useVersions = (path: string): History => {
  const { workspace, permissions } = useIdentity();
  const position = useFilePosition();
  const query = { path, limit: 50, ...position };
  const options = { changesOn: changesFiles, hasPast: false, isOff: permissions === null };
  return useList('readFileHistory', { params: { id: workspace }, query }, options);
};

/** Returns the path that a file had after a change. */
const pathAfter = ({ to, path }: FileChange): string => to ?? path;
export const placeOf = (change: FileChange): ContentPlace => ({
  path: pathAfter(change),
  at: change.version,
});

const WORDS: Readonly<Record<FileChange['type'], string>> = {
  ...{ written: 'written', moved: 'moved', deleted: 'to the bin', restored: 'restored' },
  changed_outside: 'changed on disk',
};

/** The actor of a change, with links to the agent and to the turn that made it. */
export const Actor = ({ cause }: Pick<FileChange, 'cause'>) => {
  const agent = /^agent\/(.+)$/.exec(cause.actor)?.[1];
  return (
    <>
      {agent === undefined ? (
        <VisibleText text={cause.actor} />
      ) : (
        <Link to={`/agents/${encodeURIComponent(agent)}`}>{agent}</Link>
      )}
      {cause.sessionId && (
        <>
          {' in '}
          <Link to={`/sessions/${cause.sessionId}`}>
            session <Id id={cause.sessionId} />
          </Link>
        </>
      )}
    </>
  );
};

interface TurnProps {
  readonly cause: FileChange['cause'];
  /** Asks whether the changes of the turn are to be taken back. */
  readonly takeBack: () => void;
}

const Turn = ({ cause: { sessionId, turnId, callId }, takeBack }: TurnProps) =>
  sessionId && turnId ? (
    <>
      <Link to={`/sessions/${sessionId}/why/${turnId}`}>Why turn {turnId.slice(0, 8)}</Link>
      {callId && (
        <div className={ui.muted}>
          call <Id id={callId} />
        </div>
      )}
      <ActButton permission="files:write" onClick={takeBack}>
        Take back…
      </ActButton>
    </>
  ) : (
    <span className={ui.muted}>no turn</span>
  );

interface RestoreProps {
  readonly entry: FileEntry | null;
  readonly path: string;
  readonly change: FileChange;
  readonly newest: FileChange | undefined;
  readonly onClose: () => void;
}

/** Shows the difference to the file as it is, before a version becomes the newest one again. */
const RestoreDialog = ({ entry, path, change, newest, onClose }: RestoreProps) => {
  const { workspace } = useIdentity();
  const expect = entry?.digest ?? null;
  const restore = (): Promise<unknown> => {
    // Bytes of a time at which the file had another name are written under the present one.
    const operation =
      pathAfter(change) === path
        ? ({ op: 'restore', path, version: change.version, expect } as const)
        : ({ op: 'write', path, digest: change.digest ?? '', size: change.size, expect } as const);
    return client.http.changeFiles({ params: { id: workspace }, body: { changes: [operation] } });
  };
  const close = (isDone: boolean): void => {
    onClose();
    if (isDone) setParams({ v: null, from: null });
  };
  return (
    <ConfirmDialog
      title={`Restore version ${change.version}?`}
      action={`Restore version ${change.version}`}
      permission="files:write"
      onConfirm={restore}
      onClose={close}
    >
      <p>It becomes a new version. All versions stay.</p>
      {newest?.digest && (
        <Suspense fallback={<Loading what="the difference" />}>
          <VersionDiff before={placeOf(newest)} after={placeOf(change)} label="What the restore changes" />
        </Suspense>
      )}
    </ConfirmDialog>
  );
};

interface VersionRowProps {
  readonly change: FileChange;
  /** Digest of the file as it is. */
  readonly digest: string | null | undefined;
  readonly isCurrent: boolean;
  readonly restore: () => void;
  readonly takeBack: () => void;
}

const VersionRow = ({ change, digest, isCurrent, restore, takeBack }: VersionRowProps) => (
  <tr aria-current={isCurrent}>
    <td>v{change.version}</td>
    <td className={pages.contentCell}>
      {WORDS[change.type]}
      {change.to !== null && (
        <div className={ui.muted}>
          from <VisibleText text={change.path} />
        </div>
      )}
    </td>
    <td>
      <Actor cause={change.cause} />
    </td>
    <td>
      <Turn cause={change.cause} takeBack={takeBack} />
    </td>
    <td>
      <Time at={change.at} />
    </td>
    <td>
      {change.digest !== null && (
        <div className={css.versionActions}>
          <Button
            aria-label={`Show version ${change.version}`}
            onClick={() => setParams({ v: change.version, from: null })}
          >
            Show
          </Button>
          <Button
            aria-label={`Compare version ${change.version}`}
            onClick={() => setParams({ from: change.version })}
          >
            Compare
          </Button>
          {change.digest !== digest && (
            <ActButton permission="files:write" onClick={restore}>
              Restore
            </ActButton>
          )}
        </div>
      )}
    </td>
  </tr>
);

interface VersionsProps {
  readonly path: string;
  /** The file as it is; null if it is in the bin. */
  readonly entry: FileEntry | null;
  readonly history: History;
}

/** Versions of a file with their actors, turns and times. */
export const Versions = ({ path, entry, history }: VersionsProps) => {
  const [restored, setRestored] = useState<FileChange | null>(null);
  const [takenBack, setTakenBack] = useState<FileChange['cause'] | null>(null);
  const shown = useParam('v');
  const { data, problem, refresh } = history;
  const changes = data?.changes ?? [];
  const current = shown === '' ? changes[0]?.version : Number(shown);
  return (
    <Panel title="Versions">
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      {!data && !problem && <Loading what="versions" />}
      {data && (
        <Table label="Versions" columns={['Version', 'Change', 'By', 'Turn', 'Time', 'Actions']}>
          {changes.map((change) => (
            <VersionRow
              key={change.version}
              {...{ change, digest: entry?.digest, isCurrent: change.version === current }}
              restore={() => setRestored(change)}
              takeBack={() => setTakenBack(change.cause)}
            />
          ))}
        </Table>
      )}
      <ShowMore list={history} what="versions" count={changes.length} />
      {restored && (
        <RestoreDialog
          {...{ entry, path, change: restored, newest: entry ? changes[0] : undefined }}
          onClose={() => setRestored(null)}
        />
      )}
      {takenBack?.sessionId && takenBack.turnId && (
        <RewindDialog
          sessionId={takenBack.sessionId}
          turnId={takenBack.turnId}
          onClose={() => setTakenBack(null)}
        />
      )}
    </Panel>
  );
};
