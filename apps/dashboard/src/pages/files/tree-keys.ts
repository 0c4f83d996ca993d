import { useRef, type KeyboardEvent } from 'react';
import { findByPrefix, folderOf, pathKey, type FileEntry, type TreeRow } from '../../data/file-tree.js';
import { openPath } from './open-path.js';
import { openFolders, setFolder } from './use-tree.js';

export interface TreeActions {
  readonly rename: (entry: FileEntry) => void;
  readonly remove: (entry: FileEntry) => void;
}

export interface RowsProps {
  readonly rows: readonly TreeRow[];
  readonly selected: string;
  readonly isFlat: boolean;
  readonly showMore: (folder: string) => void;
  readonly actions: TreeActions;
}

const TYPE_AHEAD_MS = 800;

/** Collects the letters that are typed quickly after each other. */
const useTypeAhead = (): ((key: string) => string) => {
  const typed = useRef({ text: '', at: Number.NEGATIVE_INFINITY });
  return (key) => {
    const isLater = performance.now() - typed.current.at > TYPE_AHEAD_MS;
    typed.current = { text: isLater ? key : typed.current.text + key, at: performance.now() };
    return typed.current.text;
  };
};

/** Opens a row, or reads more entries of its folder. */
export const activate = (row: TreeRow | undefined, showMore: RowsProps['showMore']): void => {
  if (row?.kind === 'more') showMore(row.folder);
  else if (row) openPath(row.entry.path);
};

/** Opens a folder, goes to its first entry, or closes it and goes to the folder above. */
const moveSideways = (
  key: string,
  row: TreeRow | undefined,
  go: (path: string) => void,
  step: () => void,
): void => {
  if (row?.kind !== 'entry') return;
  const { path, kind } = row.entry;
  const isOpen = kind === 'folder' && openFolders.get().has(path);
  if (key === 'ArrowRight' && kind === 'folder') return isOpen ? step() : setFolder(path, true);
  if (key === 'ArrowLeft') return isOpen ? setFolder(path, false) : go(folderOf(path));
};

/** Keys of the tree: arrows, Home and End, letters, Enter, F2 and Delete. */
export const useTreeKeys = (
  { rows, showMore, actions }: RowsProps,
  active: number,
  setActive: (i: number) => void,
) => {
  const typeAhead = useTypeAhead();
  const goTo = (index: number): void => {
    if (index >= 0 && index < rows.length) setActive(index);
  };
  return (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = rows[active];
    const moves: Readonly<Record<string, () => void>> = {
      ArrowDown: () => goTo(active + 1),
      ArrowUp: () => goTo(active - 1),
      Home: () => goTo(0),
      End: () => goTo(rows.length - 1),
      PageDown: () => goTo(Math.min(rows.length - 1, active + 15)),
      PageUp: () => goTo(Math.max(0, active - 15)),
      Enter: () => activate(row, showMore),
      F2: () => row?.kind === 'entry' && actions.rename(row.entry),
      Delete: () => row?.kind === 'entry' && actions.remove(row.entry),
    };
    const move = moves[event.key];
    if (move) move();
    else if (event.key === 'ArrowRight' || event.key === 'ArrowLeft')
      moveSideways(
        event.key,
        row,
        (path) => goTo(rows.findIndex((each) => pathKey(each) === path)),
        () => goTo(active + 1),
      );
    else if (event.key.length === 1 && event.key !== ' ')
      goTo(findByPrefix(rows, active - 1, typeAhead(event.key)));
    else return;
    event.preventDefault();
  };
};
