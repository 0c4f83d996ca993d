import { lazy, Suspense, useMemo, useState } from 'react';
import { changedFiles, type ChangedFile } from '../../data/changed-files.js';
import { useIdentity } from '../../data/identity.js';
import { Link, usePosition } from '../../data/router.js';
import { useRead } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { css as ui, Loading, Time } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { pageOfFile } from '../files/open-path.js';
import type { FamilyChat } from './use-family.js';
import css from './chats.module.css';

const VersionDiff = lazy(async () => ({ default: (await import('../files/version-diff.js')).VersionDiff }));
const RewindDialog = lazy(async () => ({
  default: (await import('../files/rewind-dialog.js')).RewindDialog,
}));

/** Number of changes of the workspace that are searched for those of a chat. */
const CHANGES = 500;

/** Returns the tree of files of a chat: a branch may have an own copy. */
const treeOf = ({ sessionId, branchOf }: FamilyChat): { readonly session?: string } =>
  branchOf?.files === 'own' ? { session: sessionId } : {};

/** Reads the files that a chat has changed as of the position of the page. */
export const useChangedFiles = (chat: FamilyChat) => {
  const { sessionId } = chat;
  const { workspace } = useIdentity();
  const at = usePosition();
  const { data } = useRead(
    'readFileHistory',
    {
      params: { id: workspace },
      query: { ...treeOf(chat), limit: CHANGES, ...(at !== null && { position: at }) },
    },
    { changesOn: ({ category }) => category === 'file', hasPast: false },
  );
  return useMemo(
    () => ({ files: changedFiles(data?.changes ?? [], sessionId), isCut: Boolean(data?.nextCursor) }),
    [data, sessionId],
  );
};

const WORDS: Readonly<Record<ChangedFile['last']['type'], string>> = {
  ...{ written: 'written', moved: 'moved', deleted: 'to the bin', restored: 'restored' },
  changed_outside: 'changed on disk',
};

interface ChangedRowProps {
  readonly chat: FamilyChat;
  readonly file: ChangedFile;
}

const ChangedRow = ({ chat, file: { path, before, after, last, isShared } }: ChangedRowProps) => {
  const tree = treeOf(chat);
  const isInWorkspace = tree.session === undefined;
  const [isOpen, setOpen] = useState(false);
  return (
    <li className={css.panelFile}>
      {after && isInWorkspace ? (
        <Link to={pageOfFile(path)}>
          <VisibleText text={path} />
        </Link>
      ) : (
        <VisibleText text={path} />
      )}
      <span className={ui.muted}>
        {WORDS[last.type]}{' '}
        {last.cause.turnId && (
          <Link to={`/sessions/${chat.sessionId}/why/${last.cause.turnId}`}>by a turn</Link>
        )}{' '}
        <Time at={last.at} />
      </span>
      <details className={css.change} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary aria-label={`Changes of ${path}`}>Changes</summary>
        {isShared && (
          <p className={ui.muted}>Others changed this file in between: their lines are here too.</p>
        )}
        {isOpen && (
          <Suspense fallback={<Loading what="the difference" />}>
            <VersionDiff
              before={before && { ...before, ...tree }}
              after={after && { ...after, ...tree }}
              label={`Changes of ${path} in this chat`}
            />
          </Suspense>
        )}
      </details>
    </li>
  );
};

interface ChangedFilesProps {
  readonly chat: FamilyChat;
  readonly files: readonly ChangedFile[];
  /** True if the workspace has changes that were not read. */
  readonly isCut: boolean;
}

/** Files that a chat has changed, with the changes of each, and the way to take them back. */
export const ChangedFiles = ({ chat, files, isCut }: ChangedFilesProps) => {
  const position = usePosition();
  const [isAsking, setAsking] = useState(false);
  const turnId = files.find(({ last }) => last.cause.turnId !== null)?.last.cause.turnId;
  return (
    <>
      <ul aria-label="Changed files">
        {files.map((file) => (
          <ChangedRow key={file.path} chat={chat} file={file} />
        ))}
      </ul>
      {isCut && <p className={ui.muted}>Only the newest {CHANGES} changes of the workspace were searched.</p>}
      {turnId && position === null && (
        <ActButton permission="files:write" onClick={() => setAsking(true)}>
          Take back changes
        </ActButton>
      )}
      {isAsking && turnId && (
        <Suspense fallback={null}>
          <RewindDialog sessionId={chat.sessionId} turnId={turnId} onClose={() => setAsking(false)} />
        </Suspense>
      )}
    </>
  );
};
