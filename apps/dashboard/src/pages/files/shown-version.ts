import type { FileEntry } from '../../data/file-tree.js';
import { useParam } from '../../data/router.js';
import type { ContentPlace } from './use-content.js';
import { useFilePosition } from './use-tree.js';
import { placeOf, type FileChange } from './versions.js';

/** The version of a file that the page shows. */
export interface Shown {
  /** Change whose version is shown; undefined for the newest one while it is read. */
  readonly change: FileChange | undefined;
  readonly place: ContentPlace;
  readonly size: number;
  readonly digest: string | null;
  readonly isNewest: boolean;
}

/** Returns what the page shows of a file: the newest version, or the one of the address. */
export const useShown = (entry: FileEntry, changes: readonly FileChange[]): Shown => {
  const wanted = useParam('v');
  const position = useFilePosition();
  const chosen = wanted === '' ? undefined : changes.find(({ version }) => String(version) === wanted);
  if (chosen && chosen.digest !== entry.digest)
    return {
      change: chosen,
      place: placeOf(chosen),
      size: chosen.size,
      digest: chosen.digest,
      isNewest: false,
    };
  const { path, size, digest, is_virtual: isVirtual, version } = entry;
  // A stored file is read at its version, so that its bytes are those of its digest.
  const place = isVirtual ? { path, ...position } : { path, at: version };
  return { change: changes[0], place, size, digest, isNewest: true };
};
