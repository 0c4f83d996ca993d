import type { ChatView, FileEntryView } from '@antiphon/contracts/agent';
import type { FileTrees } from './file-trees.js';

/** A file that is built on read. */
export interface VirtualFile {
  readonly path: string;
  readonly size: number;
  /** Chat that the file shows, with the version of its text. */
  readonly chat: ChatView & { readonly version: number };
}

/** Files that are built on read, such as chats. Without `until`, a position of the log: now. */
export interface VirtualFiles {
  /** Returns the paths of all files. */
  list(workspace: string, treeId: string, until?: number): Promise<readonly string[]>;
  find(workspace: string, treeId: string, path: string, until?: number): Promise<VirtualFile | null>;
  /** Returns the sizes of files in bytes. */
  sizes(
    workspace: string,
    treeId: string,
    paths: readonly string[],
    until?: number,
  ): Promise<ReadonlyMap<string, number>>;
  /** Returns the text of a file; null if there is none. */
  render(workspace: string, treeId: string, path: string, until?: number): Promise<Uint8Array | null>;
}

/** Returns the entry of a file that is built on read. */
export const virtualEntry = (path: string, size: number, version: number): FileEntryView => ({
  ...{ path, kind: 'file', size, digest: null, mode: 0o644, version, is_virtual: true },
  ...{ changedAt: null, changedBy: null },
});

/** Version of a tree, with the position of the log of files that are built on read. Default: now. */
export interface ReadTime {
  readonly at?: number | undefined;
  readonly until?: number | undefined;
}

/**
 * Returns the last position of the log at which a tree had a version; undefined for the newest. A
 * file that is built on read is shown as of this position.
 */
export const lastPositionOf = async (
  trees: Pick<FileTrees, 'read' | 'readFacts'>,
  workspace: string,
  treeId: string,
  { at, until }: ReadTime,
): Promise<number | undefined> => {
  if (until !== undefined || at === undefined) return until;
  const { version, base } = await trees.read(workspace, treeId);
  const next = at + 1 - (base?.version ?? 0);
  if (at >= version || next < 1) return undefined;
  const { events } = await trees.readFacts(workspace, treeId, { beforeVersion: next + 1, limit: 1 });
  const [after] = events;
  return after && after.position - 1;
};
