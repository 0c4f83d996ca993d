import type { FileToSend } from './drafts.js';
import { client } from './gateway.js';
import { identity } from './identity.js';
import { uploadPath } from './upload-name.js';
import { toProblem } from './use-read.js';

/** Time that the upload of a file may take, ms. */
export const UPLOAD_MS = 15 * 60_000;
const MAX_NAMES = 50;

interface Watch {
  /** Called with the number of bytes that are sent. */
  readonly onProgress: (sent: number) => void;
  readonly signal: AbortSignal;
}

/** Rejects for a folder, and for a file that has changed since it was chosen. */
export const requireReadable = (file: Blob): Promise<unknown> => file.slice(0, 1).arrayBuffer();

/**
 * Uploads a file into `uploads/`. A taken name gets a number, so that no file of the workspace is
 * overwritten. Rejects with the error of the client.
 */
export const uploadFile = async (file: Blob, name: string, watch: Watch): Promise<FileToSend> => {
  const params = { id: identity.get().workspace };
  await requireReadable(file);
  const query = { expect: 'none' } as const;
  for (let attempt = 1; ; attempt++) {
    const path = uploadPath(name, attempt);
    try {
      await client.http.writeFile({
        params: { ...params, path },
        ...{ query, upload: file, timeoutMs: UPLOAD_MS, ...watch },
      });
      return { path, name, size: file.size };
    } catch (error) {
      if (toProblem(error).code !== 'FILE.EXISTS' || attempt === MAX_NAMES) throw error;
    }
  }
};
