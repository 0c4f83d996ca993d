import { useState, type FormEvent } from 'react';
import { useAct } from '../../data/act.js';
import { folderOf, type FileEntry } from '../../data/file-tree.js';
import { client } from '../../data/gateway.js';
import { useIdentity } from '../../data/identity.js';
import { keepPosition, navigate, setParams, useParam } from '../../data/router.js';
import { ActButton } from '../../ui/act-button.js';
import { ConfirmDialog } from '../../ui/confirm-dialog.js';
import { countOf } from '../../ui/format.js';
import { Button, css as ui, Dialog, Field, ProblemBox } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { openPath, pageOfFile } from './open-path.js';
import { setFolder } from './use-tree.js';

interface PathDialogProps {
  readonly title: string;
  readonly label: string;
  readonly hint: string;
  readonly action: string;
  readonly start: string;
  readonly work: (path: string) => Promise<void>;
  readonly onClose: () => void;
}

const PathDialog = ({ title, label, hint, action, start, work, onClose }: PathDialogProps) => {
  const [path, setPath] = useState(start);
  const { run, isBusy, problem } = useAct();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (path !== '' && path !== start) run(() => work(path));
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit}>
        <Field label={label} hint={hint}>
          {(props) => (
            <input
              {...props}
              value={path}
              autoComplete="off"
              spellCheck={false}
              onChange={(event) => setPath(event.target.value)}
            />
          )}
        </Field>
        {problem && <ProblemBox problem={problem} />}
        <div className={ui.dialogFoot}>
          <Button onClick={onClose}>Close</Button>
          <ActButton permission="files:write" type="submit" look="primary" isOff={isBusy || path === start}>
            {action}
          </ActButton>
        </div>
      </form>
    </Dialog>
  );
};

interface NewDialogProps {
  /** Folder in which the new one begins. */
  readonly folder: string;
  readonly onClose: () => void;
}

const useCreate = (onClose: () => void) => {
  const { workspace } = useIdentity();
  return async (path: string, opens: string): Promise<void> => {
    await client.http.writeFile({ params: { id: workspace, path }, body: { text: '', expect: null } });
    onClose();
    navigate(keepPosition(opens));
  };
};
const startIn = (folder: string): string => (folder === '' ? '' : `${folder}/`);

/** Creates an empty file, and opens it to be edited. */
const NewFileDialog = ({ folder, onClose }: NewDialogProps) => {
  const create = useCreate(onClose);
  return (
    <PathDialog
      {...{ title: 'New file', label: 'Path', action: 'Create', start: startIn(folder), onClose }}
      work={(path) => create(path, `${pageOfFile(path)}?edit=1`)}
      hint="From the root of the workspace, such as docs/plan.md."
    />
  );
};

/** Name of the empty file with which a new folder begins: a folder exists as long as it has a file. */
const FOLDER_FILE = '.keep';

/** Creates a folder, and opens it. */
const NewFolderDialog = ({ folder, onClose }: NewDialogProps) => {
  const create = useCreate(onClose);
  const work = (path: string): Promise<void> => {
    const own = path
      .split('/')
      .filter((name) => name !== '')
      .join('/');
    return create(`${own}/${FOLDER_FILE}`, pageOfFile(own));
  };
  return (
    <PathDialog
      {...{ title: 'New folder', label: 'Path', action: 'Create', start: startIn(folder), work, onClose }}
      hint={`Such as docs/drafts. It begins with the empty file ${FOLDER_FILE}: a folder exists as long as files are in it.`}
    />
  );
};

/** The dialog that the address asks for: of a new folder, of a new file, or none. */
export const NewDialog = ({ folder }: { readonly folder: string }) => {
  const wanted = useParam('new');
  if (wanted === '') return null;
  const close = (): void => setParams({ new: null });
  const Wanted = wanted === 'folder' ? NewFolderDialog : NewFileDialog;
  return <Wanted folder={folder} onClose={close} />;
};

/** A file, or a folder with the number of its files. */
export type Changed = Pick<FileEntry, 'path' | 'digest' | 'files'>;

interface EntryDialogProps {
  readonly entry: Changed;
  readonly onClose: () => void;
}

/** Renames a file or a folder, or moves it to another folder. */
export const MoveDialog = ({ entry, onClose }: EntryDialogProps) => {
  const { workspace } = useIdentity();
  const { path, digest } = entry;
  const work = async (to: string): Promise<void> => {
    const expect = digest === null ? {} : { expect: digest };
    const changes = [{ op: 'move', path, to, ...expect } as const];
    await client.http.changeFiles({ params: { id: workspace }, body: { changes } });
    onClose();
    openPath(to);
  };
  return (
    <PathDialog
      {...{ title: 'Rename or move', label: 'New path', action: 'Move', start: path, work, onClose }}
      hint="The history of the file follows it."
    />
  );
};

/** Moves a file, or a folder with the files that the caller saw, to the bin. */
export const RemoveDialog = ({ entry, onClose }: EntryDialogProps) => {
  const { workspace } = useIdentity();
  const { path, digest, files } = entry;
  const remove = async (): Promise<void> => {
    const query = files === undefined ? { ...(digest !== null && { expect: digest }) } : { files };
    await client.http.deleteFile({ params: { id: workspace, path }, query });
    setFolder(path, false);
    openPath(folderOf(path));
  };
  return (
    <ConfirmDialog
      title="Move to the bin?"
      action="Move to the bin"
      permission="files:write"
      onConfirm={remove}
      onClose={onClose}
    >
      <p>
        <VisibleText text={path} />
        {files === undefined ? '' : `, a folder with ${countOf(files, 'file')}`}. It can be restored from the
        bin.
      </p>
    </ConfirmDialog>
  );
};

/** Buttons that rename or remove a file or a folder, with their dialogs. */
export const ChangeButtons = ({ entry }: { readonly entry: Changed }) => {
  const [dialog, setDialog] = useState<'move' | 'remove' | null>(null);
  const close = (): void => setDialog(null);
  return (
    <>
      <ActButton permission="files:write" onClick={() => setDialog('move')}>
        Rename or move
      </ActButton>
      <ActButton permission="files:write" icon="trash" onClick={() => setDialog('remove')}>
        To the bin
      </ActButton>
      {dialog === 'move' && <MoveDialog entry={entry} onClose={close} />}
      {dialog === 'remove' && <RemoveDialog entry={entry} onClose={close} />}
    </>
  );
};
