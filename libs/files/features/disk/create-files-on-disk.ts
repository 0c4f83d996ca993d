import { WorkTrials, createWorkStarts } from '@antiphon/database';
import type { Fence, LeaseStore } from '@antiphon/event-store';
import { LeaderLoop } from '@antiphon/messaging';
import { FILES_LEASE, FILES_ON_DISK_TIMES, FilesOnDisk } from './files-on-disk.js';
import type { FilesOnDiskTimes } from './files-on-disk.js';
import { WorkspaceFolders } from './workspace-folders.js';
import type { WorkspaceFoldersOptions } from './workspace-folders.js';

export interface CreateFilesOptions extends Omit<WorkspaceFoldersOptions, 'fence'> {
  readonly leases: LeaseStore;
  /** Owner of this process's leases. */
  readonly owner: string;
  readonly times?: Partial<FilesOnDiskTimes>;
}

/** Creates what follows the folders of all workspaces, in the process that has the lease of it. */
export const createFilesOnDisk = ({ leases, owner, ...options }: CreateFilesOptions): FilesOnDisk => {
  const { pool, logger } = options;
  const times = { ...FILES_ON_DISK_TIMES, ...options.times };
  const loop = new LeaderLoop({
    ...{ leases, owner, logger, ...times, name: FILES_LEASE },
    warnings: { round: 'files on disk not followed', release: 'lease of files not released' },
  });
  const fence = (): Fence | null => loop.fence();
  const folders = new WorkspaceFolders({ ...options, fence });
  const trials = new WorkTrials(createWorkStarts(pool));
  return new FilesOnDisk({ folders, loop, trials, logger, times });
};
