import type { RemoteCallEnd, ToolWorkers as WorkerCounts, runRemoteCall } from '@antiphon/contracts/sandbox';
import type { RegisteredTool } from '@antiphon/contracts/sandbox';
import type { z } from 'zod';
import { RemoteResults } from './remote-results.js';

export type RemoteCallRequest = z.output<typeof runRemoteCall.request>;

/** Calls that wait for a free program of one version of a tool. */
const MAX_WAITING = 1_000;

/** A program that serves remote tools, as far as the choice of one needs. */
export interface Worker {
  readonly id: string;
  readonly workspace: string;
  /** Maximum number of its concurrent calls. */
  readonly concurrency: number;
  /** Digests of the versions that it serves, by the name of the tool. */
  readonly tools: ReadonlyMap<string, string>;
  /** True while it accepts a further call. */
  readonly mayTakeMore: boolean;
  readonly inFlight: number;
  /** Sends a call. The promise never rejects. */
  run(request: RemoteCallRequest): Promise<RemoteCallEnd>;
  /** Cancels an attempt. Returns false if it runs none of this id. */
  cancel(attemptId: string): boolean;
}

type Version = Pick<RemoteCallRequest, 'workspace' | 'name' | 'digest'>;

interface Waiting {
  readonly version: Version;
  readonly attemptId: string;
  readonly resume: (worker: Worker | null) => void;
}

const serves = ({ workspace, tools }: Worker, { workspace: wanted, name, digest }: Version): boolean =>
  workspace === wanted && tools.get(name) === digest;

const loadOf = ({ inFlight, concurrency }: Worker): number => inFlight / concurrency;

/** Programs that are connected to this gateway. Calls of a tool go to the one with the least load. */
export class ToolWorkers {
  /** Large results of all programs. */
  readonly results = new RemoteResults();
  readonly #workers = new Map<string, Worker>();
  readonly #waiting = new Set<Waiting>();
  #isStopping = false;

  /** `onChange` is called when the programs of a workspace change. */
  constructor(private readonly onChange: (workspace: string) => void = () => undefined) {}

  get size(): number {
    return this.#workers.size;
  }

  /** Adds a program, or notes that its tools have changed. */
  put(worker: Worker): void {
    this.#workers.set(worker.id, worker);
    this.onChange(worker.workspace);
    this.resumeWaiting();
  }

  remove(worker: Worker): void {
    if (this.#workers.get(worker.id) !== worker) return;
    this.#workers.delete(worker.id);
    this.onChange(worker.workspace);
    for (const waiting of [...this.#waiting]) if (!this.#exists(waiting.version)) this.#end(waiting, null);
  }

  /** Takes no further call. Returns the number of calls that run. */
  stop(): number {
    this.#isStopping = true;
    for (const waiting of [...this.#waiting]) this.#end(waiting, null);
    return [...this.#workers.values()].reduce((sum, { inFlight }) => sum + inFlight, 0);
  }

  /** Runs a call on the program with the least load. Waits for a free one until its timeout. */
  async run(request: RemoteCallRequest): Promise<RemoteCallEnd> {
    if (this.#isStopping || !this.#exists(request)) return { end: 'not_sent', reason: 'absent' };
    const startedAt = performance.now();
    const worker = this.#choose(request) ?? (await this.#wait(request));
    if (!worker) return { end: 'not_sent', reason: this.#exists(request) ? 'busy' : 'absent' };
    const timeoutMs = Math.max(1, Math.floor(request.timeoutMs - (performance.now() - startedAt)));
    const end = await worker.run({ ...request, timeoutMs });
    this.resumeWaiting();
    return end;
  }

  cancel(attemptId: string): void {
    for (const waiting of this.#waiting) if (waiting.attemptId === attemptId) return this.#end(waiting, null);
    for (const worker of this.#workers.values()) if (worker.cancel(attemptId)) return;
  }

  /** Starts calls that wait, as far as programs are free. */
  resumeWaiting(): void {
    for (const waiting of [...this.#waiting]) {
      const worker = this.#choose(waiting.version);
      if (worker) this.#end(waiting, worker);
    }
  }

  workspaces(): string[] {
    return [...new Set([...this.#workers.values()].map(({ workspace }) => workspace))];
  }

  /** Returns the number of programs for each version of a tool of a workspace. */
  counts(workspace: string): WorkerCounts[] {
    const counts = new Map<string, WorkerCounts>();
    for (const worker of this.#workers.values()) {
      if (worker.workspace !== workspace) continue;
      for (const [name, digest] of worker.tools) {
        const key = `${name}\n${digest}`;
        counts.set(key, { name, digest, workers: (counts.get(key)?.workers ?? 0) + 1 });
      }
    }
    return [...counts.values()];
  }

  #exists(version: Version): boolean {
    for (const worker of this.#workers.values()) if (serves(worker, version)) return true;
    return false;
  }

  #choose(version: Version): Worker | undefined {
    let best: Worker | undefined;
    for (const worker of this.#workers.values())
      if (serves(worker, version) && worker.mayTakeMore && (!best || loadOf(worker) < loadOf(best)))
        best = worker;
    return best;
  }

  #wait({ workspace, name, digest, attemptId, timeoutMs }: RemoteCallRequest): Promise<Worker | null> {
    if (this.#waiting.size >= MAX_WAITING) return Promise.resolve(null);
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#end(waiting, null), timeoutMs);
      const resume = (worker: Worker | null): void => {
        clearTimeout(timer);
        resolve(worker);
      };
      const waiting: Waiting = { version: { workspace, name, digest }, attemptId, resume };
      this.#waiting.add(waiting);
    });
  }

  #end(waiting: Waiting, worker: Worker | null): void {
    if (this.#waiting.delete(waiting)) waiting.resume(worker);
  }
}

/** Returns the tools of a program by name. */
export const toolsByName = (tools: readonly RegisteredTool[]): ReadonlyMap<string, string> =>
  new Map(tools.map(({ name, digest }) => [name, digest]));
