import { watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import type { FileLimits } from '@antiphon/files-domain';
import { fileTreeStream } from '@antiphon/contracts/agent';
import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import { WorkTrials, acrossWorkspaces, createWorkStarts } from '@antiphon/database';
import type { Fence, LeaseStore } from '@antiphon/event-store';
import { createWakeSignal, isAppError } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { Leadership } from '@antiphon/messaging';
import { defineCounter } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import { fileTreeIdOf } from '@antiphon/agent-log';
import type { FileTreesPort } from '../trees/file-trees.js';
import { ignoreCopies } from './copy-mark.js';
import { DiskStates } from './disk-state.js';
import { SafeFolder } from './safe-folder.js';
import { WorkspaceFolder } from './workspace-folder.js';
import type { SyncResult } from './workspace-folder.js';

/** Lease of the process that writes and compares the folders. */
export const FILES_LEASE = 'files-disk';

export interface FilesOnDiskTimes {
  readonly leaseMs: number;
  /** Time between two looks at the versions of trees. */
  readonly pollMs: number;
  /** Least time between two comparisons of a folder that has no new version. */
  readonly compareMs: number;
  /** Time between two searches for new workspaces. */
  readonly searchMs: number;
}

export const FILES_ON_DISK_TIMES: FilesOnDiskTimes = {
  leaseMs: 5_000,
  pollMs: 500,
  compareMs: 2_000,
  searchMs: 10_000,
};

export interface FilesOnDiskOptions {
  readonly folder: string;
  readonly trees: FileTreesPort;
  readonly pool: pg.Pool;
  readonly leases: LeaseStore;
  readonly limits: (workspace: string) => FileLimits;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Owner of this process's leases. */
  readonly owner: string;
  readonly times?: Partial<FilesOnDiskTimes>;
  /** True if files are executable where their tree has them so. Default: false. */
  readonly keepsExecutable?: boolean;
}

// Reads one row for each workspace: the smallest one after the one before.
const WORKSPACES_SQL = `with recursive found as (
    (select workspace from stream_heads order by workspace limit 1)
    union all
    select (select h.workspace from stream_heads h where h.workspace > f.workspace order by h.workspace limit 1)
    from found f where f.workspace is not null)
  select workspace from found where workspace is not null`;
const VERSIONS_SQL = `select h.workspace, h.version from unnest($1::text[], $2::text[]) as wanted (workspace, stream_id)
  join stream_heads h on h.workspace = wanted.workspace and h.stream_id = wanted.stream_id`;

/** Time for which a folder that ended its processes is not compared, ms. */
const PARKED_MS = 3_600_000;

/** Share of the time that comparisons of a folder may take: one part of this number. */
const COMPARE_SHARE = 20;

const changes = defineCounter(
  'antiphon_files_disk_changes',
  'Files that the folder or its tree changed, by kind',
);

interface Watched {
  readonly folder: WorkspaceFolder;
  /** Version of the tree that the last round saw. */
  version: number;
  /** Monotonic time of the next comparison without a new version, ms. */
  compareAt: number;
  hint: FSWatcher | null;
  isFailing: boolean;
  /** Monotonic time until which the folder is not compared, ms. */
  parkedUntil: number;
}

/**
 * Writes the file tree of each workspace to a folder, and records what other programs change there.
 * One process does so at a time. The tree in the log decides; the folder is a copy.
 */
export class FilesOnDisk {
  private readonly times: FilesOnDiskTimes;
  private readonly leadership: Leadership;
  private readonly wakeSignal = createWakeSignal();
  private readonly watched = new Map<string, Watched>();
  private states: { readonly store: DiskStates; readonly folder: SafeFolder } | null = null;
  private searchAt = 0;
  private readonly trials: WorkTrials;
  private isFailing = false;

  constructor(private readonly options: FilesOnDiskOptions) {
    const { leases, owner, logger, times } = options;
    this.times = { ...FILES_ON_DISK_TIMES, ...times };
    this.trials = new WorkTrials(createWorkStarts(options.pool));
    this.leadership = new Leadership({
      ...{ leases, owner, logger, name: FILES_LEASE },
      leaseMs: this.times.leaseMs,
    });
  }

  /** Starts the next round soon. */
  wake(): void {
    this.wakeSignal.wake();
  }

  isLeader(): boolean {
    return this.leadership.isLeader();
  }

  /** Follows the trees and their folders until the signal aborts, then releases the lease. */
  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.beginStop(), { once: true });
    while (!signal.aborted) {
      await this.tryRound(signal);
      if (!signal.aborted) await this.wakeSignal.wait(this.times.pollMs);
    }
    await this.close();
    await this.leadership.release().catch((err: unknown) => {
      this.options.logger.warn({ err }, 'lease of files not released');
    });
  }

  /** Releases a first comparison that runs: it did not end this process. */
  private beginStop(): void {
    this.wake();
    this.trials.release().catch((err: unknown) => {
      this.options.logger.warn({ work: 'files-disk', err }, 'work not released');
    });
  }

  /** Compares every folder now. */
  async syncAll(): Promise<ReadonlyMap<string, SyncResult>> {
    const results = new Map<string, SyncResult>();
    for (const watched of await this.findWorkspaces())
      results.set(watched.folder.workspace, await this.sync(watched));
    return results;
  }

  private async tryRound(signal: AbortSignal): Promise<void> {
    try {
      await this.round(signal);
      this.isFailing = false;
    } catch (err) {
      if (!this.isFailing) this.options.logger.warn({ err }, 'files on disk not followed');
      this.isFailing = true;
    }
  }

  private async round(signal: AbortSignal): Promise<void> {
    if (!this.leadership.isLeader()) {
      await this.close();
      if (!(await this.leadership.campaign())) return;
    }
    const all = await this.findWorkspaces();
    const versions = await this.readVersions(all);
    for (const watched of all) {
      const isNew = (versions.get(watched.folder.workspace) ?? 0) !== watched.version;
      if (!isNew && performance.now() < watched.compareAt) continue;
      if (signal.aborted || this.fence() === null) return;
      await this.trySync(watched);
    }
  }

  private fence(): Fence | null {
    return this.leadership.fence();
  }

  /** A folder that fails does not stop those of other workspaces. */
  private async trySync(watched: Watched): Promise<void> {
    const { workspace } = watched.folder;
    // A folder that ended three processes is left alone for some time.
    if (performance.now() < watched.parkedUntil) return;
    try {
      // The first comparison reads every file, and an earlier process may have ended by one.
      await (watched.version < 0
        ? this.trials.run(FILES_LEASE, workspace, () => this.sync(watched))
        : this.sync(watched));
      watched.isFailing = false;
    } catch (err) {
      if (isAppError(err) && err.code === 'WORK.PROCESS_LOST')
        watched.parkedUntil = performance.now() + PARKED_MS;
      watched.compareAt = performance.now() + this.times.compareMs;
      if (!watched.isFailing) this.options.logger.warn({ workspace, err }, 'files of workspace not compared');
      watched.isFailing = true;
    }
  }

  private async sync(watched: Watched): Promise<SyncResult> {
    const startedAt = performance.now();
    const result = await watched.folder.sync();
    for (const kind of ['written', 'removed', 'outside', 'conflicts'] as const)
      if (result[kind] > 0) changes.add(result[kind], { kind });
    watched.version = watched.folder.version();
    const tookMs = performance.now() - startedAt;
    watched.compareAt = performance.now() + Math.max(this.times.compareMs, tookMs * COMPARE_SHARE);
    watched.hint ??= this.watch(watched);
    return result;
  }

  /** Watches the upper folder: its changes are compared at once. Polls find all others. */
  private watch(watched: Watched): FSWatcher | null {
    try {
      const hint = watch(watched.folder.root, { persistent: false }, () => {
        watched.compareAt = 0;
        this.wake();
      });
      hint.on('error', () => hint.close());
      return hint;
    } catch {
      return null;
    }
  }

  private async findWorkspaces(): Promise<Watched[]> {
    if (performance.now() >= this.searchAt) {
      const { rows } = await acrossWorkspaces(this.options.pool).query<{ workspace: string }>({
        ...{ name: 'files_disk_workspaces', text: WORKSPACES_SQL },
      });
      const { store } = await this.openStates();
      for (const workspace of new Set([DEFAULT_WORKSPACE, ...rows.map((row) => row.workspace)]))
        if (!this.watched.has(workspace)) this.watched.set(workspace, this.createWatched(workspace, store));
      this.searchAt = performance.now() + this.times.searchMs;
    }
    return [...this.watched.values()];
  }

  private createWatched(workspace: string, states: DiskStates): Watched {
    const { trees, limits, clock, logger, folder, keepsExecutable = false } = this.options;
    const fence = (): Fence | null => this.fence();
    const deps = { trees, states, limits: limits(workspace), clock, logger, fence, keepsExecutable };
    const root = join(folder, workspace);
    const own = new WorkspaceFolder(deps, workspace, root);
    return { folder: own, version: -1, compareAt: 0, hint: null, isFailing: false, parkedUntil: 0 };
  }

  /** Returns the versions of the event streams of the workspaces' trees. */
  private async readVersions(all: readonly Watched[]): Promise<ReadonlyMap<string, number>> {
    const workspaces = all.map(({ folder }) => folder.workspace);
    const streams = workspaces.map((workspace) => fileTreeStream(fileTreeIdOf(workspace)));
    const { rows } = await acrossWorkspaces(this.options.pool).query<{ workspace: string; version: string }>({
      ...{ name: 'files_disk_versions', text: VERSIONS_SQL, values: [workspaces, streams] },
    });
    return new Map(rows.map(({ workspace, version }) => [workspace, Number(version)]));
  }

  private async openStates() {
    const own = join(this.options.folder, '.antiphon');
    if (this.states === null) {
      const folder = await SafeFolder.open(join(own, 'state'), join(own, 'partial'));
      await ignoreCopies(this.options.folder);
      this.states = { folder, store: new DiskStates(folder) };
    }
    return this.states;
  }

  private async close(): Promise<void> {
    for (const { folder, hint } of this.watched.values()) {
      hint?.close();
      await folder.close();
    }
    this.watched.clear();
    this.searchAt = 0;
    await this.states?.folder.close();
    this.states = null;
  }
}
