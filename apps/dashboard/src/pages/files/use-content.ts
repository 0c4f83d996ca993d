import { useCallback, useEffect, useState } from 'react';
import { readContent, type FileContent } from '../../data/file-content.js';
import { client } from '../../data/gateway.js';
import { useIdentity } from '../../data/identity.js';
import { toProblem, type Problem } from '../../data/use-read.js';

/** Bytes to read: of a file, at a version of the tree or a position of the log. */
export interface ContentPlace {
  readonly path: string;
  readonly at?: number;
  readonly position?: number;
  /** Session with a tree of its own; absent for the tree of the workspace. */
  readonly session?: string;
}

/** Reads the bytes of a file. The cache of reads would keep them for too long. */
export const readBytes = (
  workspace: string,
  { path, ...query }: ContentPlace,
  signal?: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> =>
  client.http.readFile({ params: { id: workspace, path }, query, bytes: true, ...(signal && { signal }) });

interface ContentRead {
  readonly content: FileContent | null;
  readonly problem: Problem | null;
  readonly retry: () => void;
}

/**
 * Reads the content of a place again when its key changes, such as the digest of the file. Null
 * reads nothing. The last content stays until the next one is there.
 */
export const useContent = (place: ContentPlace | null, key: string): ContentRead => {
  const { workspace } = useIdentity();
  const [round, setRound] = useState(0);
  const [state, setState] = useState<Omit<ContentRead, 'retry'> & { readonly path: string }>({
    ...{ content: null, problem: null, path: '' },
  });
  const text = place && JSON.stringify(place);
  useEffect(() => {
    if (text === null) return;
    const abort = new AbortController();
    const wanted = JSON.parse(text) as ContentPlace;
    readBytes(workspace, wanted, abort.signal).then(
      (bytes) =>
        !abort.signal.aborted && setState({ content: readContent(bytes), problem: null, path: wanted.path }),
      (error: unknown) =>
        !abort.signal.aborted && setState({ content: null, problem: toProblem(error), path: wanted.path }),
    );
    return () => abort.abort();
  }, [workspace, text, key, round]);
  const retry = useCallback(() => setRound((count) => count + 1), []);
  const isOther = place === null || state.path !== place.path;
  return isOther ? { content: null, problem: null, retry } : { ...state, retry };
};
