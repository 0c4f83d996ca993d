import { causedError } from '@antiphon/contracts/causes';
import type { FileTreeEvent } from '@antiphon/contracts/agent';
import { rejected } from '@antiphon/kernel';
import type { FileTree } from './file-tree.js';
import { repositoryAbove, unsafePartOf } from './unsafe-names.js';

/** Returns the path that an event gives to a file; null for a removal. */
const placedBy = ({ type, data }: FileTreeEvent): string | null => {
  switch (type) {
    case 'FileWritten':
    case 'FileRestored':
      return data.path;
    case 'FileMoved':
      return data.to;
    case 'FileChangedOutside':
      return data.digest === null ? null : data.path;
    default:
      return null;
  }
};

/** Refuses names that have a meaning to a program next to us, which would run something. */
export const checkUnsafeNames = ({ names }: FileTree, events: readonly FileTreeEvent[]): void => {
  for (const event of events) {
    const path = placedBy(event);
    if (path === null) continue;
    const unsafe = unsafePartOf(path);
    if (unsafe)
      throw causedError(
        rejected,
        'FILE.UNSAFE_NAME',
        { kind: 'file_name_obeyed', path, ...unsafe },
        { path, part: unsafe.part },
      );
    const repository = repositoryAbove(path, names);
    if (repository !== null)
      throw causedError(
        rejected,
        'FILE.UNSAFE_NAME',
        { kind: 'file_makes_repository', path, folder: repository },
        { path, part: repository },
      );
  }
};
