import { identity } from './identity.js';
import type { FileToSend } from './drafts.js';
import { uploadPath } from './upload-name.js';

const MAX_NAMES = 50;

/** A failed upload, with the code of the gateway. Code null: the gateway was not reached. */
export class UploadError extends Error {
  constructor(
    message: string,
    readonly code: string | null,
  ) {
    super(message);
  }
}

interface Watch {
  readonly onProgress: (loaded: number) => void;
  readonly signal: AbortSignal;
}

const parseProblem = (text: string): { readonly code?: string; readonly detail?: string } => {
  try {
    return JSON.parse(text) as { code?: string; detail?: string };
  } catch {
    return {};
  }
};

/** Writes a file where there is none. `fetch` tells no progress of an upload. */
const put = (path: string, file: Blob, { onProgress, signal }: Watch): Promise<void> =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const workspace = encodeURIComponent(identity.get().workspace);
    const parts = path.split('/').map(encodeURIComponent).join('/');
    request.open('PUT', `/api/v1/workspaces/${workspace}/files/${parts}?expect=none`);
    request.setRequestHeader('content-type', 'application/octet-stream');
    request.setRequestHeader('x-antiphon-csrf', '1');
    request.upload.onprogress = ({ loaded }) => onProgress(loaded);
    const fail = (message: string, code: string | null): void => reject(new UploadError(message, code));
    request.onerror = () => fail('the connection was lost', null);
    request.onabort = () => fail('the upload was stopped', 'ABORTED');
    request.onload = () => {
      if (request.status < 300) return resolve();
      const { code, detail } = parseProblem(request.responseText);
      fail(detail ?? `the gateway answered ${request.status}`, code ?? `STATUS.${request.status}`);
    };
    signal.addEventListener('abort', () => request.abort(), { once: true });
    request.send(file);
  });

/**
 * Uploads a file into `uploads/`. A taken name gets a number, so that no file of the workspace is
 * overwritten.
 */
export const uploadFile = async (file: Blob, name: string, watch: Watch): Promise<FileToSend> => {
  for (let attempt = 1; ; attempt++) {
    const path = uploadPath(name, attempt);
    try {
      await put(path, file, watch);
      return { path, name, size: file.size };
    } catch (error) {
      const isTaken = error instanceof UploadError && error.code === 'FILE.EXISTS';
      if (!isTaken || attempt === MAX_NAMES) throw error;
    }
  }
};
