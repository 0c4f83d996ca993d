import { watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import type { WorkTrials } from '@antiphon/database';
import { isAppError } from '@antiphon/kernel';
import type { LeaderLoop } from '@antiphon/messaging';
import { defineCounter } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import type { SyncResult, WorkspaceFolder } from './workspace-folder.js';
import type { WorkspaceFolders } from './workspace-folders.js';

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
  readonly folders: WorkspaceFolders;
  readonly loop: LeaderLoop;
  readonly trials: WorkTrials;
  readonly logger: Logger;
  readonly times: FilesOnDiskTimes;
}

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
  private readonly watched = new Map<string, Watched>();
  private searchAt = 0;

  constructor(private readonly options: FilesOnDiskOptions) {}

  /** Starts the next round soon. */
  wake(): void {
    this.options.loop.wake();
  }

  isLeader(): boolean {
    return this.options.loop.isLeader();
  }

  /** Follows the trees and their folders until the signal aborts, then releases the lease. */
  run(signal: AbortSignal): Promise<void> {
    const { loop, trials, logger } = this.options;
    // A first comparison that runs did not end this process.
    const release = (): void =>
      void trials
        .release()
        .catch((err: unknown) => logger.warn({ work: 'files-disk', err }, 'work not released'));
    signal.addEventListener('abort', release, { once: true });
    return loop.run(signal, {
      round: () => this.round(signal),
      endTerm: () => this.close(),
      stop: () => this.close(),
    });
  }

  /** Compares every folder now. */
  async syncAll(): Promise<ReadonlyMap<string, SyncResult>> {
    const results = new Map<string, SyncResult>();
    for (const watched of await this.findWorkspaces())
      results.set(watched.folder.workspace, await this.sync(watched));
    return results;
  }

  private async round(signal: AbortSignal): Promise<void> {
    const all = await this.findWorkspaces();
    const versions = await this.options.folders.readVersions([...this.watched.keys()]);
    for (const watched of all) {
      const isNew = (versions.get(watched.folder.workspace) ?? 0) !== watched.version;
      if (!isNew && performance.now() < watched.compareAt) continue;
      if (signal.aborted || !this.isLeader()) return;
      await this.trySync(watched);
    }
  }

  /** A folder that fails does not stop those of other workspaces. */
  private async trySync(watched: Watched): Promise<void> {
    const { workspace } = watched.folder;
    // A folder that ended three processes is left alone for some time.
    if (performance.now() < watched.parkedUntil) return;
    const { trials, times, logger } = this.options;
    try {
      // The first comparison reads every file, and an earlier process may have ended by one.
      await (watched.version < 0
        ? trials.run(FILES_LEASE, workspace, () => this.sync(watched))
        : this.sync(watched));
      watched.isFailing = false;
    } catch (err) {
      if (isAppError(err) && err.code === 'WORK.PROCESS_LOST')
        watched.parkedUntil = performance.now() + PARKED_MS;
      watched.compareAt = performance.now() + times.compareMs;
      if (!watched.isFailing) logger.warn({ workspace, err }, 'files of workspace not compared');
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
    watched.compareAt = performance.now() + Math.max(this.options.times.compareMs, tookMs * COMPARE_SHARE);
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
      const { folders, times } = this.options;
      for (const workspace of await folders.find())
        if (!this.watched.has(workspace))
          this.watched.set(workspace, {
            ...{ folder: await folders.open(workspace), version: -1, compareAt: 0 },
            ...{ hint: null, isFailing: false, parkedUntil: 0 },
          });
      this.searchAt = performance.now() + times.searchMs;
    }
    return [...this.watched.values()];
  }

  private async close(): Promise<void> {
    for (const { folder, hint } of this.watched.values()) {
      hint?.close();
      await folder.close();
    }
    this.watched.clear();
    this.searchAt = 0;
    await this.options.folders.close();
  }
}
