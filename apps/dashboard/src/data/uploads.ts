import { client } from './gateway.js';
import { createStore, type Store } from './store.js';
import { requireReadable, UPLOAD_MS } from './upload.js';
import { toProblem } from './use-read.js';

/** Uploads that run at the same time. */
const MOST_AT_ONCE = 4;

export interface Upload {
  readonly id: number;
  readonly file: File;
  readonly path: string;
  readonly state: 'waiting' | 'sending' | 'done' | 'exists' | 'failed' | 'cancelled';
  readonly sent: number;
  readonly problem: string | null;
}

const ENDED: ReadonlySet<Upload['state']> = new Set(['done', 'failed', 'cancelled']);
export const hasEnded = ({ state }: Upload): boolean => ENDED.has(state);

/** Uploads of one page: a few at a time, each with its progress and its error. */
export class Uploads {
  readonly all: Store<readonly Upload[]> = createStore<readonly Upload[]>([]);
  private readonly aborts = new Map<number, AbortController>();
  private nextId = 1;

  constructor(private readonly workspace: () => string) {}

  /** Adds files below a folder. A name that is in use waits for an answer. */
  add(folder: string, files: readonly File[]): void {
    const added = files.map((file): Upload => {
      const name = file.webkitRelativePath === '' ? file.name : file.webkitRelativePath;
      const path = folder === '' ? name : `${folder}/${name}`;
      return { id: this.nextId++, file, path, state: 'waiting', sent: 0, problem: null };
    });
    this.all.update((before) => [...before.filter((upload) => !hasEnded(upload)), ...added]);
    this.start();
  }

  /** Replaces the files whose names are in use, or leaves them as they are. */
  answerClashes(answer: 'replace' | 'skip'): void {
    const clashing = this.all.get().filter(({ state }) => state === 'exists');
    for (const upload of clashing) {
      if (answer === 'skip') this.change(upload.id, { state: 'cancelled', problem: 'left as it is' });
      else void this.send(upload, undefined);
    }
  }

  cancel(id: number): void {
    this.aborts.get(id)?.abort();
    this.change(id, { state: 'cancelled', problem: null });
    this.start();
  }

  retry(id: number): void {
    this.all.update((before) =>
      before.map((upload) =>
        upload.id === id ? { ...upload, state: 'waiting', problem: null, sent: 0 } : upload,
      ),
    );
    this.start();
  }

  clear(): void {
    this.all.update((before) => before.filter((upload) => !hasEnded(upload)));
  }

  private start(): void {
    const free = MOST_AT_ONCE - this.all.get().filter(({ state }) => state === 'sending').length;
    const waiting = this.all.get().filter(({ state }) => state === 'waiting');
    for (const upload of waiting.slice(0, Math.max(0, free))) void this.send(upload, 'none');
  }

  private async send({ id, file, path }: Upload, expect: 'none' | undefined): Promise<void> {
    const abort = new AbortController();
    this.aborts.set(id, abort);
    this.change(id, { state: 'sending', problem: null, sent: 0 });
    try {
      await requireReadable(file);
      await client.http.writeFile({
        params: { id: this.workspace(), path },
        ...{ query: { expect }, upload: file, signal: abort.signal, timeoutMs: UPLOAD_MS },
        onProgress: (sent) => this.change(id, { sent }),
      });
      this.change(id, { state: 'done', sent: file.size });
    } catch (error) {
      const { message, code } = toProblem(error);
      if (abort.signal.aborted) this.change(id, { state: 'cancelled' });
      else if (code === 'FILE.EXISTS') this.change(id, { state: 'exists', sent: 0 });
      else this.change(id, { state: 'failed', problem: message });
    }
    this.aborts.delete(id);
    this.start();
  }

  private change(id: number, change: Partial<Upload>): void {
    this.all.update((before) =>
      before.map((upload) => (upload.id === id && !hasEnded(upload) ? { ...upload, ...change } : upload)),
    );
  }
}
