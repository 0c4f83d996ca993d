import type { LogEvent } from '@antiphon/client';

/** A file that a chat has attached: a snapshot of its bytes. */
export interface AttachedFile {
  readonly path: string;
  readonly size: number;
  readonly digest: string;
}

/** Returns the files that were attached before each turn, since the one before. */
export const filesByTurn = (events: readonly LogEvent[]): ReadonlyMap<string, readonly AttachedFile[]> => {
  const found = new Map<string, readonly AttachedFile[]>();
  let waiting: AttachedFile[] = [];
  for (const { type, data } of events) {
    if (type === 'ChatFileAttached') {
      const { path, size, digest } = data as unknown as AttachedFile;
      waiting = [...waiting.filter((file) => file.path !== path), { path, size, digest }];
    }
    if (type === 'ChatFileDetached')
      waiting = waiting.filter(({ path }) => path !== (data as unknown as AttachedFile).path);
    if (type !== 'TurnRequested' || waiting.length === 0) continue;
    found.set((data as { readonly turnId: string }).turnId, waiting);
    waiting = [];
  }
  return found;
};

/** Returns the files that a chat has now. A later snapshot of a path replaces the one before. */
export const attachedNow = (events: readonly LogEvent[]): readonly AttachedFile[] => {
  const files = new Map<string, AttachedFile>();
  for (const { type, data } of events) {
    const { path, size, digest } = (data ?? {}) as unknown as AttachedFile;
    if (type === 'ChatFileAttached') files.set(path, { path, size, digest });
    if (type === 'ChatFileDetached') files.delete(path);
  }
  return [...files.values()];
};
