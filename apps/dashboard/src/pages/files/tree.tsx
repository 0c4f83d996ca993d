import { useMemo } from 'react';
import { rowsOfMatches, rowsOfTree, type FolderPart } from '../../data/file-tree.js';
import { useStore } from '../../data/store.js';
import { countOf } from '../../ui/format.js';
import { Empty, Loading, ProblemBox } from '../../ui/ui.js';
import type { TreeActions } from './tree-keys.js';
import { TreeRows } from './tree-rows.js';
import { openFolders, useFound, useTree } from './use-tree.js';
import css from './files.module.css';

const NO_PARTS: ReadonlyMap<string, FolderPart> = new Map();

/** The tree of the workspace, or the files whose path has a text. */
export const FileTree = ({
  selected,
  text,
  actions,
}: {
  readonly selected: string;
  readonly text: string;
  readonly actions: TreeActions;
}) => {
  const tree = useTree();
  const open = useStore(openFolders);
  const found = useFound(text);
  const parts = tree.data ?? NO_PARTS;
  const rows = useMemo(() => {
    if (text === '') return rowsOfTree(parts, open);
    // Known entries show at once, and those of the gateway when it has answered.
    const known = [...parts.values()].flatMap(({ entries }) => entries);
    return rowsOfMatches(found.data?.entries ?? known, text, found.data?.total);
  }, [parts, open, text, found.data]);
  const problem = tree.problem ?? found.problem;
  if (problem) return <ProblemBox problem={problem} retry={tree.refresh} />;
  if (!tree.data) return <Loading what="files" />;
  if (rows.length === 0)
    return text === '' ? (
      <Empty title="No files yet">
        <p>Upload some, or drop them anywhere on this page.</p>
      </Empty>
    ) : (
      <Empty title="No file matches">
        <p>No path has this text.</p>
      </Empty>
    );
  const left = text === '' ? 0 : (found.data?.total ?? rows.length) - rows.length;
  return (
    <>
      <TreeRows
        rows={rows}
        selected={selected}
        isFlat={text !== ''}
        showMore={tree.showMore}
        actions={actions}
      />
      {left > 0 && <p className={css.left}>{countOf(left, 'other result')} left out: type more letters.</p>}
    </>
  );
};
