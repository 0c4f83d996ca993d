import { useState, type FormEvent } from 'react';
import { useAct } from '../../data/act.js';
import { folderOf, type FileEntry } from '../../data/file-tree.js';
import { client } from '../../data/gateway.js';
import { useIdentity } from '../../data/identity.js';
import { keepPosition, navigate } from '../../data/router.js';
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

/** Creates an empty file, and opens it to be edited. */
export const NewFileDialog = ({
  folder,
  onClose,
}: {
  readonly folder: string;
  readonly onClose: () => void;
}) => {
  const { workspace } = useIdentity();
  const work = async (path: string): Promise<void> => {
    await client.http.writeFile({ params: { id: workspace, path }, body: { text: '', expect: null } });
    onClose();
    navigate(keepPosition(`${pageOfFile(path)}?edit=1`));
  };
  const start = folder === '' ? '' : `${folder}/`;
  return (
    <PathDialog
      {...{ title: 'New file', label: 'Path', action: 'Create', start, work, onClose }}
      hint="From the root of the workspace, such as docs/plan.md. Folders exist as long as files are in them."
    />
  );
};

/** Renames a file or a folder, or moves it to another folder. */
export const MoveDialog = ({
  entry,
  onClose,
}: {
  readonly entry: FileEntry;
  readonly onClose: () => void;
}) => {
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
export const RemoveDialog = ({
  entry,
  onClose,
}: {
  readonly entry: FileEntry;
  readonly onClose: () => void;
}) => {
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
