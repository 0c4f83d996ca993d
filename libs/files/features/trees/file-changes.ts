import type { FileResult, FileTreeEvent } from '@antiphon/contracts/agent';
import type { DecidedAppend } from './file-trees.js';

/** A committed change. */
export interface FilesChanged {
  readonly version: number;
  readonly files: FileResult[];
}

/** Returns the files of a fact, after it. */
export const resultOf = (event: FileTreeEvent, version: number): FileResult[] => {
  const { type, data } = event;
  switch (type) {
    case 'FileTreeForked':
      return [];
    case 'FileMoved':
      return [
        { path: data.path, digest: null, before: data.digest, size: 0, version },
        { path: data.to, digest: data.digest, before: null, size: data.size, version },
      ];
    case 'FileDeleted':
      return [{ path: data.path, digest: null, before: data.digest, size: 0, version }];
    default:
      return [{ path: data.path, digest: data.digest, before: data.before, size: data.size, version }];
  }
};

/** Returns the change of an append after a version of the tree. */
export const changedOf = ({ events, version }: Pick<DecidedAppend, 'events' | 'version'>): FilesChanged => ({
  version: version + events.length,
  files: events.flatMap((event, index) => resultOf(event, version + 1 + index)),
});
