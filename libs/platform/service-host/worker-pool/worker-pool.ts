import { transient } from '@antiphon/kernel';
import { WorkerThread } from './worker-thread.js';
import type { ThreadJob } from './worker-thread.js';

/** Functions of a module that threads run. Inputs and results are copied between threads. */
export type Jobs = Readonly<Record<string, (input: never) => unknown>>;

export interface PoolOptions {
  /** Maximum number of threads. An owner has at most all but one at once. */
  readonly threads?: number;
  /** Time without work after which a thread ends, ms. */
  readonly idleMs?: number;
}

export interface PoolJob<J extends Jobs, N extends keyof J & string> {
  readonly name: N;
  readonly input: Parameters<J[N]>[0];
  /** Owner of the work, such as a workspace. Owners take turns. */
  readonly owner: string;
  /** Maximum time in the thread, ms. */
  readonly deadlineMs: number;
  /** Buffers of the input that move to the thread instead of being copied. */
  readonly transfer?: readonly ArrayBuffer[];
  /** Refuses the job if more jobs of its owner wait. */
  readonly mostWaiting?: number;
}

interface Waiting {
  readonly job: ThreadJob;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface Owner {
  readonly waiting: Waiting[];
  running: number;
}

/** Functions of one module, which the threads of a pool run. */
export interface ThreadJobs<J extends Jobs> {
  run<N extends keyof J & string>(job: PoolJob<J, N>): Promise<Awaited<ReturnType<J[N]>>>;
}

const THREADS = 2;
const MOST_WAITING = 64;
const IDLE_MS = 60_000;

const closed = (): Error => transient('WORK.BUSY', 'the service stops; try again later');

/**
 * Runs work on texts of others in a worker thread, because no bound of its time holds on the loop
 * that all tenants share. Work over its deadline is ended with its thread: `WORK.DEADLINE`.
 */
export class WorkerPool {
  private readonly owners = new Map<string, Owner>();
  private readonly idle: { readonly thread: WorkerThread; readonly timer: NodeJS.Timeout }[] = [];
  private readonly threads = new Set<WorkerThread>();
  private readonly most: number;
  private isClosed = false;

  constructor(private readonly options: PoolOptions = {}) {
    this.most = options.threads ?? THREADS;
  }

  /** Number of living threads. */
  get size(): number {
    return this.threads.size;
  }

  /** Returns the functions that a compiled module exports as `jobs`. */
  jobsOf<J extends Jobs>(module: URL): ThreadJobs<J> {
    return {
      run: <N extends keyof J & string>(job: PoolJob<J, N>) =>
        this.enqueue({ ...job, module }) as Promise<Awaited<ReturnType<J[N]>>>,
    };
  }

  private enqueue(job: ThreadJob & Pick<PoolJob<Jobs, string>, 'owner' | 'mostWaiting'>): Promise<unknown> {
    const { owner: name, mostWaiting = MOST_WAITING } = job;
    if (this.isClosed) return Promise.reject(closed());
    const owner = this.owners.get(name) ?? { waiting: [], running: 0 };
    if (owner.waiting.length >= mostWaiting)
      return Promise.reject(
        transient('WORK.BUSY', 'too much work on texts of this workspace waits; try again later'),
      );
    this.owners.set(name, owner);
    return new Promise<unknown>((resolve, reject) => {
      owner.waiting.push({ job, resolve, reject });
      this.dispatch();
    });
  }

  /** Ends all threads. All work fails. */
  async close(): Promise<void> {
    this.isClosed = true;
    for (const { waiting } of this.owners.values())
      for (const { reject } of waiting.splice(0)) reject(closed());
    for (const { timer } of this.idle.splice(0)) clearTimeout(timer);
    await Promise.all([...this.threads].map((thread) => thread.end()));
  }

  private dispatch(): void {
    for (const [name, owner] of this.owners) {
      if (this.idle.length === 0 && this.threads.size >= this.most) return;
      if (owner.running >= Math.max(1, this.most - 1)) continue;
      const next = owner.waiting.shift();
      if (!next) continue;
      // The next turn of this owner is after those of all others.
      this.owners.delete(name);
      this.owners.set(name, owner);
      void this.start(name, owner, next);
    }
  }

  private async start(name: string, owner: Owner, { job, resolve, reject }: Waiting): Promise<void> {
    owner.running++;
    const thread = this.takeThread();
    try {
      resolve(await thread.run(job));
    } catch (error) {
      reject(error);
    }
    if (this.threads.has(thread)) this.park(thread);
    owner.running--;
    if (owner.running === 0 && owner.waiting.length === 0) this.owners.delete(name);
    this.dispatch();
  }

  private takeThread(): WorkerThread {
    const parked = this.idle.pop();
    if (parked) {
      clearTimeout(parked.timer);
      return parked.thread;
    }
    const thread = new WorkerThread((ended) => this.forget(ended));
    this.threads.add(thread);
    return thread;
  }

  private park(thread: WorkerThread): void {
    const timer = setTimeout(() => void thread.end(), this.options.idleMs ?? IDLE_MS);
    timer.unref();
    this.idle.push({ thread, timer });
  }

  private forget(thread: WorkerThread): void {
    this.threads.delete(thread);
    const at = this.idle.findIndex((parked) => parked.thread === thread);
    if (at !== -1) clearTimeout(this.idle.splice(at, 1)[0]?.timer);
  }
}

/**
 * Each worker thread of this process for work on texts of members, agents and tools whose time has
 * no small bound. They start with the first work.
 */
export const textWork = new WorkerPool();

/**
 * Returns the functions of the module `text-jobs.ts` next to `address`, at the root of a package.
 * Specs run the sources, but a thread runs the compiled program.
 */
export const textJobsOf = <J extends Jobs>(address: string): ThreadJobs<J> =>
  textWork.jobsOf(new URL(address.endsWith('.ts') ? './dist/text-jobs.js' : './text-jobs.js', address));

/** Maximum time of one piece of work, ms. */
export const TEXT_DEADLINE_MS = 5_000;
