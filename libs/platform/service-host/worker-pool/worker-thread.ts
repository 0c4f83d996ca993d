import { causedError } from '@antiphon/contracts/causes';
import { Worker } from 'node:worker_threads';
import { AppError, bug, rejected } from '@antiphon/kernel';
import type { ErrorData, ErrorKind } from '@antiphon/kernel';

/** An error in a form that threads can exchange. `kind` is absent for one that is no AppError. */
export interface PlainError {
  readonly kind?: ErrorKind;
  readonly code: string;
  readonly message: string;
  readonly data: ErrorData;
  /** Cause of a fact, which is plain data. Another error is not passed on. */
  readonly cause?: unknown;
}

/** Message of a thread that has loaded a module, and its reply to each job. */
export type ThreadMessage =
  { readonly loaded: string } | { readonly value: unknown } | { readonly error: PlainError };

export interface ThreadJob {
  readonly module: URL;
  readonly name: string;
  readonly input: unknown;
  readonly deadlineMs: number;
  readonly transfer?: readonly ArrayBuffer[];
}

interface Running {
  readonly job: ThreadJob;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  timer?: NodeJS.Timeout;
}

/** Limit of the heap of a thread, MiB. Beyond it the thread ends, and the process lives on. */
const HEAP_MB = 384;

/** Specs run the sources, but a thread runs the compiled program. */
const MAIN = import.meta.url.endsWith('.ts')
  ? new URL('../dist/worker-pool/worker-main.js', import.meta.url)
  : new URL('./worker-main.js', import.meta.url);

const reviveError = ({ kind, code, message, data, cause }: PlainError): Error =>
  kind === undefined
    ? bug('WORK.FAILED', 'work in a thread failed', { cause: new Error(message) })
    : new AppError(kind, code, message, { data, cause });

const stopped = ({ name, deadlineMs }: ThreadJob): AppError =>
  causedError(rejected, 'WORK.DEADLINE', { kind: 'work_too_long', deadlineMs }, { work: name, deadlineMs });

const outOfMemory = ({ name }: ThreadJob): AppError =>
  causedError(rejected, 'WORK.OUT_OF_MEMORY', { kind: 'work_too_large' }, { work: name });

/** One thread that runs the functions of modules, one at a time. It is ended at a deadline. */
export class WorkerThread {
  private readonly worker: Worker;
  private running: Running | null = null;
  private readonly loaded = new Set<string>();
  private hasEnded = false;

  /** @param onEnd called once, when the thread can run nothing any more */
  constructor(private readonly onEnd: (thread: WorkerThread) => void) {
    this.worker = new Worker(MAIN, {
      execArgv: [],
      // The thread works on texts of others and needs no secret.
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    });
    // The threads must not keep a process alive that has nothing else to do.
    this.worker.unref();
    this.worker.on('message', (message: ThreadMessage) => this.receive(message));
    this.worker.on('error', (error: Error & { code?: string }) => this.fail(error));
    this.worker.on('exit', () => this.fail(new Error('the thread has ended')));
  }

  run(job: ThreadJob): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.running = { job, resolve, reject };
      this.worker.ref();
      if (this.loaded.has(job.module.href)) this.begin(this.running);
      else this.worker.postMessage({ load: job.module.href });
    });
  }

  async end(): Promise<void> {
    this.markEnded();
    await this.worker.terminate();
  }

  private receive(message: ThreadMessage): void {
    if ('loaded' in message) {
      this.loaded.add(message.loaded);
      if (this.running) this.begin(this.running);
      return;
    }
    const running = this.finish();
    if (!running) return;
    if ('error' in message) running.reject(reviveError(message.error));
    else running.resolve(message.value);
  }

  /** Sends a job to the thread. Its time starts now, so that the load of the module does not count. */
  private begin(running: Running): void {
    const { module, name, input, deadlineMs, transfer = [] } = running.job;
    running.timer = setTimeout(() => this.stop(running.job), deadlineMs);
    try {
      this.worker.postMessage({ module: module.href, name, input }, transfer);
    } catch (error) {
      this.finish()?.reject(bug('WORK.FAILED', 'the input of work cannot be sent', { cause: error }));
    }
  }

  private stop(job: ThreadJob): void {
    const running = this.finish();
    void this.end();
    running?.reject(stopped(job));
  }

  private fail(error: Error & { readonly code?: string }): void {
    const running = this.finish();
    this.markEnded();
    if (!running) return;
    const isMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
    running.reject(
      isMemory ? outOfMemory(running.job) : bug('WORK.FAILED', 'work in a thread failed', { cause: error }),
    );
  }

  private finish(): Running | null {
    const { running } = this;
    this.running = null;
    clearTimeout(running?.timer);
    this.worker.unref();
    return running;
  }

  private markEnded(): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.onEnd(this);
  }
}
