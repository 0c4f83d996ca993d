import type { RouteReply } from '@antiphon/client';

type FileChange = RouteReply<'readFileHistory'>['changes'][number];

/** Bytes of a file at a version of the tree. */
interface Place {
  readonly path: string;
  readonly at: number;
}

/** A file that a session has changed. */
export interface ChangedFile {
  /** Path after the last change. */
  readonly path: string;
  /** The file before the first change; null if there was none. */
  readonly before: Place | null;
  /** The file after the last change; null if it is in the bin. */
  readonly after: Place | null;
  readonly last: FileChange;
  /** True if others changed the file between the first and the last change of the session. */
  readonly isShared: boolean;
}

interface Known extends ChangedFile {
  readonly isTouched: boolean;
}

const placeBefore = ({ type, before, path, version }: FileChange): Place | null =>
  before === null && type !== 'moved' ? null : { path, at: version - 1 };

const placeAfter = ({ digest, type, to, path, version }: FileChange): Place | null =>
  digest === null || type === 'deleted' ? null : { path: to ?? path, at: version };

/**
 * Returns the files that a session has changed, the newest change first. A moved file stays one
 * file. Changes are newest first.
 */
export const changedFiles = (changes: readonly FileChange[], sessionId: string): readonly ChangedFile[] => {
  const files = new Map<string, Known>();
  for (const change of changes.toReversed()) {
    const known = files.get(change.path);
    const path = change.to ?? change.path;
    if (change.cause.sessionId === sessionId) {
      files.delete(change.path);
      files.set(path, {
        ...{ path, last: change, after: placeAfter(change), isTouched: false },
        before: known ? known.before : placeBefore(change),
        isShared: known !== undefined && (known.isShared || known.isTouched),
      });
    } else if (known) {
      files.delete(change.path);
      files.set(path, { ...known, isTouched: true });
    }
  }
  return [...files.values()]
    .map(({ isTouched: _, ...file }) => file)
    .toSorted((a, b) => b.last.version - a.last.version);
};
