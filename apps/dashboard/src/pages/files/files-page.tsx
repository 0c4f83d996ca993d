import { useEffect, useMemo, useRef, useState, type ChangeEvent } from 'react';
import { PageHead } from '../../app/page-head.js';
import type { PageProps } from '../../app/pages.js';
import { useRefusal } from '../../data/act.js';
import { folderOf, foldersAbove, nameOf, type FileEntry } from '../../data/file-tree.js';
import { identity } from '../../data/identity.js';
import { setParams, useParam } from '../../data/router.js';
import { Uploads } from '../../data/uploads.js';
import { ActButton } from '../../ui/act-button.js';
import { Icon } from '../../ui/icon.js';
import { Button, Loading, Panel, ProblemBox } from '../../ui/ui.js';
import { MoveDialog, NewDialog, RemoveDialog } from './dialogs.js';
import { FileView, MissingFile } from './file-view.js';
import { BinView, FolderView } from './folder-view.js';
import { openPath } from './open-path.js';
import { FileTree } from './tree.js';
import type { TreeActions } from './tree-keys.js';
import { UploadList, useDrop } from './upload-list.js';
import { setFolder, useEntries, useKept } from './use-tree.js';
import css from './files.module.css';

const QUESTION = 'What is in the workspace, who changed it, and can I have it back?';
const FILTER_MS = 150;

/** The filter of the tree. It works with each key, and the address gets it after a pause. */
const useFilter = () => {
  const wanted = useParam('q');
  const [text, setText] = useState(wanted);
  useEffect(() => setText(wanted), [wanted]);
  useEffect(() => {
    if (text === wanted) return;
    const timer = setTimeout(() => setParams({ q: text }), FILTER_MS);
    return () => clearTimeout(timer);
  }, [text, wanted]);
  return [text, setText] as const;
};

/** Shows the file or the folder of a path: the list of a file is the file alone. */
const PathView = ({ path }: { readonly path: string }) => {
  const read = useEntries(path);
  const { data, problem, refresh } = read;
  if (problem?.code === 'FILE.NOT_FOUND') return <MissingFile path={path} />;
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="the file" />;
  const [first] = data.entries;
  const isFile = path !== '' && first?.path === path && first.kind === 'file';
  return isFile ? <FileView key={path} entry={first} /> : <FolderView path={path} list={data} />;
};

const useUploadInput = (folder: string, uploads: Uploads) => {
  const input = useRef<HTMLInputElement>(null);
  const onChange = (event: ChangeEvent<HTMLInputElement>): void => {
    uploads.add(folder, [...(event.target.files ?? [])]);
    event.target.value = '';
  };
  const field = (
    <input ref={input} type="file" multiple hidden aria-label="Files to upload" onChange={onChange} />
  );
  return { field, choose: () => input.current?.click() };
};

/** Returns the folder into which uploads go: the one that is shown, or that of the shown file. */
const useTarget = (path: string): string => {
  const { data } = useKept(useEntries(path));
  const [first] = data?.entries ?? [];
  return first?.path === path && first.kind === 'file' ? folderOf(path) : path;
};

const TreePanel = ({ path, actions }: { readonly path: string; readonly actions: TreeActions }) => {
  const [text, setText] = useFilter();
  const isBin = useParam('bin') !== '';
  return (
    <Panel
      title="Tree"
      className={css.tree}
      actions={
        <Button icon="trash" aria-pressed={isBin} onClick={() => setParams({ bin: isBin ? null : '1' })}>
          Bin
        </Button>
      }
    >
      <div className={css.filter}>
        <Icon name="search" size={14} />
        <input
          type="search"
          aria-label="Find files by a part of their path"
          placeholder="Find by name"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </div>
      <FileTree selected={path} text={text.trim()} actions={actions} />
    </Panel>
  );
};

const HeadActions = ({ upload }: { readonly upload: () => void }) => (
  <>
    <ActButton permission="files:write" icon="plus" onClick={() => setParams({ new: '1' })}>
      New file
    </ActButton>
    <ActButton permission="files:write" icon="folder" onClick={() => setParams({ new: 'folder' })}>
      New folder
    </ActButton>
    <ActButton permission="files:write" look="primary" icon="send" onClick={upload}>
      Upload
    </ActButton>
  </>
);

export const FilesPage = ({ params }: PageProps) => {
  const path = params['path'] ?? '';
  const isBin = useParam('bin') !== '';
  const uploads = useMemo(() => new Uploads(() => identity.get().workspace), []);
  const [dialog, setDialog] = useState<{ kind: 'move' | 'remove'; entry: FileEntry } | null>(null);
  const target = useTarget(path);
  const { field, choose } = useUploadInput(target, uploads);
  const refusal = useRefusal('files:write');
  const { isOver, handlers } = useDrop((files) => uploads.add(target, files), refusal !== null);
  useEffect(() => foldersAbove(path).forEach((folder) => setFolder(folder, true)), [path]);
  const mayChange = (entry: FileEntry): boolean => refusal === null && !entry.is_virtual;
  const actions: TreeActions = {
    rename: (entry) => mayChange(entry) && setDialog({ kind: 'move', entry }),
    remove: (entry) => mayChange(entry) && setDialog({ kind: 'remove', entry }),
  };
  const close = (): void => setDialog(null);
  const tab = path === '' ? {} : { tabTitle: `${nameOf(path)} · Files` };
  return (
    <div {...handlers} className={css.place}>
      <PageHead title="Files" question={QUESTION} {...tab} actions={<HeadActions upload={choose} />} />
      {field}
      {isOver && (
        <div className={css.drop}>Drop to upload into {target === '' ? 'the workspace' : target}</div>
      )}
      <UploadList uploads={uploads} />
      <div className={css.columns} data-open={path !== '' || isBin || undefined}>
        <TreePanel path={path} actions={actions} />
        <div className={css.view}>
          {path !== '' && (
            <Button className={css.back} icon="previous" onClick={() => openPath(folderOf(path))}>
              Folder above
            </Button>
          )}
          {isBin ? <BinView /> : <PathView path={path} />}
        </div>
      </div>
      <NewDialog folder={target} />
      {dialog?.kind === 'move' && <MoveDialog entry={dialog.entry} onClose={close} />}
      {dialog?.kind === 'remove' && <RemoveDialog entry={dialog.entry} onClose={close} />}
    </div>
  );
};
