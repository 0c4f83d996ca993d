import { FileTreeEvent, fileTreeStream } from '@antiphon/contracts/agent';
import type { FileChangeView } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { isBelow } from '@antiphon/files-domain';
import type { EventStore, RecordedEvent } from '@antiphon/event-store';
import type { FileTreesPort } from './file-trees.js';

export interface FileHistoryDeps {
  readonly store: Pick<EventStore, 'readStreamPage'>;
  readonly trees: Pick<FileTreesPort, 'read'>;
}

export interface HistoryQuery {
  readonly workspace: string;
  readonly treeId: string;
  /** File or folder; empty for the whole tree. */
  readonly path: string;
  readonly limit: number;
  /** Exclusive. */
  readonly before?: number | undefined;
}

const PAGE = 500;
/** Maximum number of facts that one request reads. */
const MAX_READ = 20_000;

const TYPES = {
  FileWritten: 'written',
  FileMoved: 'moved',
  FileDeleted: 'deleted',
  FileRestored: 'restored',
  FileChangedOutside: 'changed_outside',
} as const;

type ChangeEvent = Exclude<FileTreeEvent, { type: 'FileTreeForked' }>;

const viewOf = (
  { eventId, position }: RecordedEvent,
  { type, data }: ChangeEvent,
  version: number,
): FileChangeView => {
  const digest = type === 'FileDeleted' ? null : data.digest;
  const before = type === 'FileDeleted' || type === 'FileMoved' ? data.digest : data.before;
  return {
    type: TYPES[type],
    ...{ version, path: data.path, to: type === 'FileMoved' ? data.to : null },
    ...{ digest, before, size: data.size, cause: data.cause, eventId, eventPosition: position, at: data.at },
  };
};

const nextOf = (version: number): number | null => (version > 1 && version !== Infinity ? version : null);

/** Tells whether a change is about one of the names, and adds the name that a file had before. */
const isAbout = (names: Set<string>, event: FileTreeEvent): event is ChangeEvent => {
  const { type, data } = event;
  if (type === 'FileTreeForked') return false;
  const paths = type === 'FileMoved' ? [data.path, data.to] : [data.path];
  const isFound = paths.some((path) => [...names].some((name) => isBelow(path, name)));
  if (type === 'FileMoved' && names.has(data.to)) names.add(data.path);
  return isFound;
};

/**
 * Reads the changes of a path, newest first. It follows a file through its moves, so that a later
 * page reads the moves of the earlier ones again.
 */
export const readHistory = async (
  { store, trees }: FileHistoryDeps,
  { workspace, treeId, path, limit, before }: HistoryQuery,
): Promise<{ changes: FileChangeView[]; next: number | null }> => {
  const changes: FileChangeView[] = [];
  const names = new Set([path]);
  let tree = { id: treeId, ...(await trees.read(workspace, treeId)) };
  const from = Math.min(before ?? Infinity, tree.version + 1);
  let below = path === '' ? from : tree.version + 1;
  for (let read = 0; read < MAX_READ && below > 1;) {
    const offset = tree.base?.version ?? 0;
    if (below <= offset + 1) {
      if (!tree.base) break;
      tree = { id: tree.base.treeId, ...(await trees.read(workspace, tree.base.treeId)) };
      continue;
    }
    const options = { beforeVersion: below - offset, limit: PAGE, backwards: true };
    const { events } = await store.readStreamPage(workspace, fileTreeStream(tree.id), options);
    if (events.length === 0) break;
    for (const recorded of events) {
      below = offset + recorded.streamVersion;
      const event = FileTreeEvent.parse(upcast(recorded));
      if (!isAbout(names, event) || below >= from) continue;
      changes.push(viewOf(recorded, event, below));
      if (changes.length === limit) return { changes, next: nextOf(below) };
    }
    if (below < from) read += events.length;
  }
  return { changes, next: nextOf(below) };
};
