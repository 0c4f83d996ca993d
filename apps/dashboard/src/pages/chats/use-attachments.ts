import { CLIENT_ERRORS } from '@antiphon/client';
import { useCallback, useEffect, useReducer, useRef } from 'react';
import type { FileToSend } from '../../data/drafts.js';
import { connection } from '../../data/gateway.js';
import { uploadFile } from '../../data/upload.js';
import { toProblem } from '../../data/use-read.js';

/** Images above this size get no thumbnail. */
const MAX_PREVIEW = 2 * 1024 * 1024;

/** A file that the next message attaches. */
export interface Attachment {
  readonly id: number;
  readonly name: string;
  readonly size: number;
  readonly state: 'uploading' | 'ready' | 'failed';
  /** Bytes that have arrived. */
  readonly loaded: number;
  /** Path in the workspace, once it is there. */
  readonly path: string | null;
  readonly error: string | null;
  /** Data URL of an image; null for other files. */
  readonly preview: string | null;
  /** Text that was pasted, which Undo gives back. */
  readonly pasted: string | null;
}

interface Upload {
  readonly file: Blob;
  readonly abort: AbortController;
}

let lastId = 0;

const attachmentOf = (file: FileToSend): Attachment => ({
  ...{ id: ++lastId, name: file.name, size: file.size, loaded: file.size, path: file.path },
  ...{ state: 'ready', error: null, preview: null, pasted: null },
});

const readPreview = (file: Blob): Promise<string | null> => {
  if (!file.type.startsWith('image/') || file.size > MAX_PREVIEW) return Promise.resolve(null);
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(typeof reader.result === 'string' ? reader.result : null);
    reader.onerror = () => resolve(null);
    reader.readAsDataURL(file);
  });
};

/** Keeps the files of a composer and their uploads. */
class Attachments {
  list: readonly Attachment[];
  readonly #uploads = new Map<number, Upload>();

  constructor(
    files: readonly FileToSend[],
    private readonly onChange: (list: readonly Attachment[]) => void,
  ) {
    this.list = files.map(attachmentOf);
  }

  readonly add = (files: readonly File[], pasted: string | null = null): void => {
    for (const file of files) this.#begin(file, file.name, pasted);
  };

  /** Adds a file that the workspace has. */
  readonly addPath = (file: FileToSend): void => {
    if (this.list.some(({ path }) => path === file.path)) return;
    this.#set([...this.list, attachmentOf(file)]);
  };

  readonly remove = (id: number): void => {
    this.#uploads.get(id)?.abort.abort();
    this.#uploads.delete(id);
    this.#set(this.list.filter((one) => one.id !== id));
  };

  readonly retry = (id: number): void => {
    const upload = this.#uploads.get(id);
    const known = this.list.find((one) => one.id === id);
    if (upload && known?.state === 'failed') void this.#send(id, known.name, upload.file);
  };

  /** Repeats the uploads that a lost connection ended. */
  readonly retryLost = (): void => {
    for (const { id, state, error } of this.list) if (state === 'failed' && error === LOST) this.retry(id);
  };

  /** Empties the list: its files are sent with a message. */
  readonly clear = (): void => this.#set([]);

  readonly setFiles = (files: readonly FileToSend[]): void => this.#set(files.map(attachmentOf));

  close(): void {
    for (const { abort } of this.#uploads.values()) abort.abort();
  }

  #begin(file: Blob, name: string, pasted: string | null): void {
    const id = ++lastId;
    this.#set([
      ...this.list,
      {
        ...{ id, name, size: file.size, state: 'uploading', loaded: 0, path: null, error: null },
        ...{ preview: null, pasted },
      },
    ]);
    void readPreview(file).then((preview) => preview && this.#update(id, { preview }));
    void this.#send(id, name, file);
  }

  async #send(id: number, name: string, file: Blob): Promise<void> {
    const abort = new AbortController();
    this.#uploads.set(id, { file, abort });
    this.#update(id, { state: 'uploading', loaded: 0, error: null });
    const onProgress = (loaded: number): void => this.#update(id, { loaded });
    try {
      const { path } = await uploadFile(file, name, { onProgress, signal: abort.signal });
      this.#uploads.delete(id);
      this.#update(id, { state: 'ready', path, loaded: file.size });
    } catch (error) {
      const { code, message } = toProblem(error);
      this.#update(id, { state: 'failed', error: code === CLIENT_ERRORS.unreachable ? LOST : message });
    }
  }

  #update(id: number, change: Partial<Attachment>): void {
    if (!this.list.some((one) => one.id === id)) return;
    this.#set(this.list.map((one) => (one.id === id ? { ...one, ...change } : one)));
  }

  #set(list: readonly Attachment[]): void {
    this.list = list;
    this.onChange(list);
  }
}

const LOST = 'the connection was lost';

/** Returns the files that can be sent. */
export const readyFiles = (list: readonly Attachment[]): readonly FileToSend[] =>
  list.flatMap(({ path, name, size }) => (path === null ? [] : [{ path, name, size }]));

/** Keeps the files of a composer. `onFiles` gets those that are in the workspace. */
export const useAttachments = (
  initial: readonly FileToSend[],
  onFiles: (files: readonly FileToSend[]) => void,
): Attachments => {
  const [, render] = useReducer((count: number) => count + 1, 0);
  const latest = useRef(onFiles);
  latest.current = onFiles;
  const change = useCallback((list: readonly Attachment[]) => {
    latest.current(readyFiles(list));
    render();
  }, []);
  const attachments = useRef<Attachments | null>(null);
  attachments.current ??= new Attachments(initial, change);
  const current = attachments.current;
  useEffect(() => {
    const stop = connection.subscribe(() => {
      if (connection.get().state === 'connected') current.retryLost();
    });
    return () => {
      stop();
      current.close();
    };
  }, [current]);
  return current;
};
