import type { RouteReply } from '@antiphon/client';

/** A file or a folder, as lists of files have it. */
export type FileEntry = RouteReply<'listFiles'>['entries'][number];

/** The part of a folder that has been read. */
export interface FolderPart {
  readonly entries: readonly FileEntry[];
  /** Number of entries with those that are not read yet. */
  readonly total: number;
}

/** A row of the tree. A row of kind `more` stands for the entries that are not read yet. */
export type TreeRow =
  | {
      readonly kind: 'entry';
      readonly entry: FileEntry;
      readonly level: number;
      /** Place among the entries of its folder, from 1, and their number. */
      readonly place: number;
      readonly count: number;
    }
  | { readonly kind: 'more'; readonly folder: string; readonly level: number; readonly left: number };

export const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
export const folderOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')));

/** Returns the folders above a path, from the root on, without the root. */
export const foldersAbove = (path: string): string[] => {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
};

export const pathKey = (row: TreeRow): string => (row.kind === 'entry' ? row.entry.path : `${row.folder}/`);

/** Returns the rows of a tree whose open folders are read, in the order in which they are shown. */
export const rowsOfTree = (
  parts: ReadonlyMap<string, FolderPart>,
  open: ReadonlySet<string>,
  folder = '',
  level = 1,
): TreeRow[] => {
  const part = parts.get(folder);
  if (!part) return [];
  const rows: TreeRow[] = [];
  for (const [index, entry] of part.entries.entries()) {
    rows.push({ kind: 'entry', entry, level, place: index + 1, count: part.total });
    if (entry.kind !== 'folder' || !open.has(entry.path)) continue;
    // One by one: a folder may have more rows than a call may have arguments.
    for (const row of rowsOfTree(parts, open, entry.path, level + 1)) rows.push(row);
  }
  const left = part.total - part.entries.length;
  if (left > 0) rows.push({ kind: 'more', folder, level, left });
  return rows;
};

/** Returns the rows of the entries whose name has a text, by path. */
export const rowsOfMatches = (entries: Iterable<FileEntry>, text: string, total?: number): TreeRow[] => {
  const wanted = text.toLowerCase();
  const byPath = new Map<string, FileEntry>();
  for (const entry of entries) if (entry.path.toLowerCase().includes(wanted)) byPath.set(entry.path, entry);
  const found = [...byPath.values()];
  return found.map((entry, index) => ({
    ...({ kind: 'entry', entry, level: 1, place: index + 1, count: total ?? found.length } as const),
  }));
};

/** Returns the index of the next row, after one, whose name begins with a text. */
export const findByPrefix = (rows: readonly TreeRow[], after: number, text: string): number => {
  const wanted = text.toLowerCase();
  for (let step = 1; step <= rows.length; step++) {
    const index = (after + step) % rows.length;
    const row = rows[index];
    if (row?.kind === 'entry' && nameOf(row.entry.path).toLowerCase().startsWith(wanted)) return index;
  }
  return -1;
};
