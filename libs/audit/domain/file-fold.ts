import type { FileTreeEvent } from '@antiphon/contracts/agent';

/** A file of a tree, with the place of the change that it is from. */
export interface FoldedFile<Place> {
  readonly digest: string;
  readonly size: number;
  readonly mode: number;
  readonly at: Place;
}

/** Folds the facts of a tree. Shares no code with the service's own fold. */
export class FileFold<Place> {
  readonly files = new Map<string, FoldedFile<Place>>();

  /** Applies the next fact of the tree. A fork changes nothing: it continues the fold of its base. */
  apply({ type, data }: FileTreeEvent, at: Place): void {
    if (type === 'FileTreeForked') return;
    this.files.delete(data.path);
    if (type === 'FileDeleted' || data.digest === null) return;
    const { digest, size, mode } = data;
    this.files.set(type === 'FileMoved' ? data.to : data.path, { digest, size, mode, at });
  }
}
