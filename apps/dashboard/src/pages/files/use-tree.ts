import type { RouteReply } from '@antiphon/client';
import { useMemo, useRef, useState } from 'react';
import { isAbout } from '../../data/event-pages.js';
import type { FileEntry, FolderPart } from '../../data/file-tree.js';
import { client } from '../../data/gateway.js';
import { useIdentity } from '../../data/identity.js';
import { readPages } from '../../data/list-pages.js';
import { usePosition } from '../../data/router.js';
import { createStore, useStore } from '../../data/store.js';
import { useFetched, type Read } from '../../data/use-read.js';

type List = RouteReply<'listFiles'>;
const PAGE = 1_000;

/** Folders that are open in the tree. They stay so while the dashboard is open. */
export const openFolders = createStore<ReadonlySet<string>>(new Set());
export const setFolder = (path: string, isOpen: boolean): void =>
  openFolders.update((before) => {
    const next = new Set(before);
    if (isOpen) next.add(path);
    else next.delete(path);
    return next;
  });

export const changesFiles = isAbout('file', 'chat');

/** Returns the position of the page as files take it: their `at` is a version of the tree. */
export const useFilePosition = (): { readonly position?: number } => {
  const at = usePosition();
  return useMemo(() => (at === null ? {} : { position: at }), [at]);
};

/** Keeps the last value while another one is read, so that the page does not empty itself. */
export const useKept = <T>(read: Read<T>): Read<T> => {
  const last = useRef<T | undefined>(undefined);
  if (read.data !== undefined) last.current = read.data;
  return read.data === undefined && !read.problem && last.current !== undefined
    ? { ...read, data: last.current, isLoading: false }
    : read;
};

const open = new Map<string, Promise<List>>();

/** Reads the first entries of a path. The tree and the view of a folder share a read that is open. */
const readFirst = (workspace: string, path: string, position: { readonly position?: number }) => {
  const name = JSON.stringify([workspace, path, position]);
  const query = { path, limit: PAGE, foldersFirst: 'true', ...position } as const;
  const list =
    open.get(name) ??
    client.http.listFiles({ params: { id: workspace }, query }).finally(() => open.delete(name));
  open.set(name, list);
  return list;
};

/** Reads the entry of a file, or the entries of a folder: the list of a file is the file alone. */
export const useEntries = (path: string): Read<List> => {
  const { workspace, permissions } = useIdentity();
  const position = useFilePosition();
  const key = permissions === null ? null : `files ${workspace} ${JSON.stringify([path, position])}`;
  return useFetched(key, () => readFirst(workspace, path, position), changesFiles);
};

interface Tree extends Read<ReadonlyMap<string, FolderPart>> {
  readonly showMore: (folder: string) => void;
}

/** Reads the open folders of the tree. A folder that is known is not read again for another one. */
export const useTree = (): Tree => {
  const { workspace, permissions } = useIdentity();
  const position = useFilePosition();
  const opened = useStore(openFolders);
  const [pages, setPages] = useState<ReadonlyMap<string, number>>(new Map());
  const wanted = ['', ...opened].map((folder) => [folder, pages.get(folder) ?? 1] as const);
  const key = permissions === null ? null : `tree ${workspace} ${JSON.stringify([position, wanted])}`;
  const known = useRef({ key, parts: new Map<string, Promise<List>>() });
  const load = async (): Promise<[string, FolderPart][]> => {
    // The same key again: something has changed.
    if (known.current.key === key) known.current.parts.clear();
    known.current.key = key;
    const readFolder = async (folder: string, count: number): Promise<[string, FolderPart]> => {
      const name = JSON.stringify([workspace, position, folder, count]);
      const query = { path: folder, limit: PAGE, foldersFirst: 'true', ...position } as const;
      const list =
        known.current.parts.get(name) ??
        // No signal: a later set of folders uses the same read.
        readPages<List>(
          (cursor) =>
            cursor === null
              ? readFirst(workspace, folder, position)
              : client.http.listFiles({ params: { id: workspace }, query: { ...query, cursor } }),
          count,
        );
      known.current.parts.set(name, list);
      list.catch(() => known.current.parts.delete(name));
      const { entries, total } = await list;
      return [folder, { entries, total }];
    };
    const parts = await Promise.allSettled(wanted.map(([folder, count]) => readFolder(folder, count)));
    const [root] = parts;
    if (root?.status === 'rejected') throw root.reason;
    // A folder that is gone has no rows.
    return parts.flatMap((part) => (part.status === 'fulfilled' ? [part.value] : []));
  };
  const read = useKept(useFetched(key, load, changesFiles));
  const data = useMemo(() => read.data && new Map(read.data), [read.data]);
  const showMore = (folder: string): void =>
    setPages((before) => new Map([...before, [folder, (before.get(folder) ?? 1) + 1]]));
  return { ...read, data, showMore };
};

const MAX_FOUND = 500;

/** Finds files of the whole tree by a part of their path. */
export const useFound = (text: string): Read<List> => {
  const { workspace } = useIdentity();
  const position = useFilePosition();
  const key = text === '' ? null : `find ${workspace} ${JSON.stringify([text, position])}`;
  const query = { q: text, recursive: 'true', limit: MAX_FOUND, ...position } as const;
  return useFetched(
    key,
    (signal) => client.http.listFiles({ params: { id: workspace }, query, signal }),
    changesFiles,
  );
};

export type { FileEntry };
