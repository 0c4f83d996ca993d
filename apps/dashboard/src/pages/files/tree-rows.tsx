import { useEffect, useMemo, useRef, useState } from 'react';
import { nameOf, pathKey, type FileEntry, type TreeRow } from '../../data/file-tree.js';
import { useStore } from '../../data/store.js';
import { countOf, formatBytes, formatNumber } from '../../ui/format.js';
import { Icon } from '../../ui/icon.js';
import { useView } from '../../ui/virtual-rows.js';
import { VisibleText } from '../../ui/visible-text.js';
import { activate, useTreeKeys, type RowsProps } from './tree-keys.js';
import { openFolders, setFolder } from './use-tree.js';
import css from './files.module.css';

/** Height of a row, px. */
const ROW = 28;
const OVERSCAN = 10;

const iconOf = ({ kind, is_virtual: isVirtual }: FileEntry) =>
  kind === 'folder' ? 'folder' : isVirtual ? 'sessions' : 'file';

const EntryRow = ({ row, isOpen }: { row: Extract<TreeRow, { kind: 'entry' }>; isOpen: boolean }) => {
  const { entry } = row;
  const isFolder = entry.kind === 'folder';
  return (
    <>
      <span className={css.twist} aria-hidden="true" data-folder={isFolder || undefined}>
        {isFolder && <Icon name={isOpen ? 'down' : 'next'} size={12} />}
      </span>
      <Icon name={iconOf(entry)} size={14} />
      <span className={css.entryName} data-name data-tip={nameOf(entry.path)}>
        <VisibleText text={nameOf(entry.path)} />
      </span>
      <span className={css.entryNote}>
        {isFolder ? formatNumber(entry.files ?? 0) : entry.is_virtual ? 'chat' : formatBytes(entry.size)}
      </span>
    </>
  );
};

const idOf = (index: number): string => `file-row-${index}`;

const RowText = ({ row, isFlat, isOpen }: { row: TreeRow; isFlat: boolean; isOpen: boolean }) => {
  if (row.kind === 'more')
    return <span className={css.more}>Show more: {countOf(row.left, 'item')} left out</span>;
  if (!isFlat) return <EntryRow row={row} isOpen={isOpen} />;
  return (
    <>
      <Icon name={iconOf(row.entry)} size={14} />
      <span className={css.entryName} data-name data-tip={row.entry.path}>
        <VisibleText text={row.entry.path} />
      </span>
    </>
  );
};

interface RowProps extends Pick<RowsProps, 'selected' | 'isFlat' | 'showMore'> {
  readonly row: TreeRow;
  readonly index: number;
  readonly isActive: boolean;
  readonly onPress: () => void;
}

const Row = ({ row, index, isActive, selected, isFlat, showMore, onPress }: RowProps) => {
  const open = useStore(openFolders);
  const entry = row.kind === 'entry' ? row.entry : null;
  const folder = entry?.kind === 'folder' && !isFlat ? entry.path : null;
  const isOpen = folder !== null && open.has(folder);
  return (
    <div
      id={idOf(index)}
      role="treeitem"
      className={css.row}
      aria-level={row.level}
      aria-posinset={row.kind === 'entry' ? row.place : undefined}
      aria-setsize={row.kind === 'entry' ? row.count : undefined}
      aria-selected={entry !== null && entry.path === selected}
      aria-expanded={folder === null ? undefined : isOpen}
      data-active={isActive || undefined}
      style={{ transform: `translateY(${index * ROW}px)`, paddingInlineStart: 6 + (row.level - 1) * 14 }}
      onClick={(event) => {
        onPress();
        const isTwist = (event.target as Element).closest('[data-folder]') !== null;
        if (folder !== null) setFolder(folder, isTwist ? !isOpen : true);
        if (!isTwist) activate(row, showMore);
      }}
    >
      <RowText row={row} isFlat={isFlat} isOpen={isOpen} />
    </div>
  );
};

/** Returns the row that the keys work on, and what moves it into view. */
const useActive = (
  rows: readonly TreeRow[],
  selected: string,
  box: { readonly current: HTMLDivElement | null },
) => {
  const [key, setKey] = useState(selected);
  useEffect(() => setKey(selected), [selected]);
  const found = useMemo(() => rows.findIndex((row) => pathKey(row) === key), [rows, key]);
  const show = (index: number): void => {
    const row = rows[index];
    if (!box.current || !row) return;
    setKey(pathKey(row));
    const { scrollTop, clientHeight } = box.current;
    const top = index * ROW;
    if (top < scrollTop) box.current.scrollTop = top;
    else if (top + ROW > scrollTop + clientHeight) box.current.scrollTop = top + ROW - clientHeight;
  };
  return { active: Math.max(0, found), show };
};

/** Rows of the tree that are in view. The tree has the focus, and names its active row. */
export const TreeRows = (props: RowsProps) => {
  const { rows, selected } = props;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useView(box);
  const { active, show } = useActive(rows, selected, box);
  const onKeyDown = useTreeKeys(props, active, show);
  const first = Math.max(0, Math.floor(view.top / ROW) - OVERSCAN);
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / ROW) + OVERSCAN);
  const shown = Array.from({ length: Math.max(0, last - first) }, (_, index) => first + index);
  // The active row is in the page also while it is out of view: the tree names it.
  if (rows.length > 0 && !shown.includes(active)) shown.push(active);
  return (
    <div
      ref={box}
      className={css.rows}
      role="tree"
      aria-label="Files"
      tabIndex={0}
      aria-activedescendant={rows.length > 0 ? idOf(active) : undefined}
      onScroll={({ currentTarget: { scrollTop: top, clientHeight: height } }) => setView({ top, height })}
      onKeyDown={onKeyDown}
    >
      <div role="presentation" className={css.space} style={{ height: rows.length * ROW }}>
        {shown.map((index) => {
          const row = rows[index];
          return (
            row && (
              <Row
                key={pathKey(row)}
                {...{ ...props, row, index, isActive: index === active }}
                onPress={() => show(index)}
              />
            )
          );
        })}
      </div>
    </div>
  );
};
