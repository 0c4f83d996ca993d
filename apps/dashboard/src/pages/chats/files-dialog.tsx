import { useState, type FormEvent } from 'react';
import { Button, css as ui, Dialog } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import css from './chats.module.css';

/** Files with which a branch works. */
export type BranchFiles = 'shared' | 'own';

interface FilesDialogProps {
  /** Files that the chat has changed since the message. */
  readonly paths: readonly string[];
  readonly onChoose: (files: BranchFiles) => void;
  readonly onClose: () => void;
}

const SHOWN = 8;

const CHOICES: readonly (readonly [BranchFiles, string, string])[] = [
  ['shared', 'Keep files as they are', 'The branch works in the files of the workspace.'],
  [
    'own',
    'Files as they were, in an own copy',
    'The branch gets a copy as of the message. Others do not see it.',
  ],
];

/** Asks which files a branch works with: the conversation goes back, and the files may not. */
export const FilesDialog = ({ paths, onChoose, onClose }: FilesDialogProps) => {
  const [files, setFiles] = useState<BranchFiles>('shared');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onChoose(files);
  };
  return (
    <Dialog title="The conversation goes back. The files too?" onClose={onClose}>
      <form onSubmit={submit} style={{ display: 'contents' }}>
        <p>This chat has changed files after the message:</p>
        <ul className={css.changedPaths}>
          {paths.slice(0, SHOWN).map((path) => (
            <li key={path}>
              <VisibleText text={path} />
            </li>
          ))}
          {paths.length > SHOWN && <li>and {paths.length - SHOWN} more</li>}
        </ul>
        <fieldset className={css.choices}>
          <legend className="visually-hidden">Files of the branch</legend>
          {CHOICES.map(([value, label, hint]) => (
            <label key={value}>
              <input type="radio" name="files" checked={files === value} onChange={() => setFiles(value)} />
              <span>
                {label}
                <small className={ui.muted}>{hint}</small>
              </span>
            </label>
          ))}
        </fieldset>
        <div className={ui.dialogFoot}>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit">
            Continue
          </Button>
        </div>
      </form>
    </Dialog>
  );
};
