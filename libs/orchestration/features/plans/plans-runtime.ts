import type pg from 'pg';
import type { AntiphonConfig } from '@antiphon/config';
import type { EventStore, LeaseStore, PastReads } from '@antiphon/event-store';
import type { Clock, Ids } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { AgentDirectory } from '@antiphon/agents-features';
import type { FileTrees, Files } from '@antiphon/files-features';
import { FileAccess } from '@antiphon/conversation-features';
import type { TurnCommands, TurnEndWatcher } from '@antiphon/conversation-features';
import { PlanRuns } from './plan-runs.js';
import { PlanStore } from './plan-store.js';
import type { PlansDeps } from './plans.handler.js';

export interface PlansRuntimeOptions {
  readonly config: AntiphonConfig;
  readonly store: EventStore;
  readonly leases: LeaseStore;
  readonly past: Pick<PastReads, 'readAt'>;
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  /** Owner of this process's leases. */
  readonly owner: string;
  readonly files: FileTrees;
  readonly workspaceFiles: Files;
  readonly directory: AgentDirectory;
  readonly turns: TurnCommands;
  readonly turnEnds: Pick<TurnEndWatcher, 'waitForEnd'>;
  readonly leaseMs?: number;
  readonly pollMs?: number;
}

/** Plans in one agent process: their streams and files, and the runs of their steps. */
export class PlansRuntime {
  /** Dependencies of this folder's handlers. */
  readonly services: PlansDeps;
  private readonly runs: PlanRuns;
  private readonly stopping = new AbortController();
  private running: Promise<void> = Promise.resolve();

  constructor(options: PlansRuntimeOptions) {
    const { config, store, clock, ids, files, workspaceFiles, directory, past } = options;
    const plans = new PlanStore({ store, trees: files, fileLimits: () => config.files, clock, ids });
    this.runs = new PlanRuns({ ...options, plans, agents: directory });
    const access = new FileAccess({ settings: config, agents: directory, workspaceFiles });
    this.services = { plans, past, directory, access, ids, wake: () => this.runs.wake() };
  }

  start(): void {
    this.running = this.runs.run(this.stopping.signal);
  }

  /** Stops to drive runs, and releases the lease. Running turns continue elsewhere. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  /**
   * Ends the loop of a process that a test has killed. Nothing that it waits for settles again.
   */
  halt(): void {
    this.stopping.abort();
  }
}
