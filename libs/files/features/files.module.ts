import { Global, Module } from '@nestjs/common';
import { BlobStore } from '@antiphon/database';
import {
  CLOCK,
  CONFIG,
  DATABASE_POOL,
  ENVIRONMENT,
  EVENT_STORE,
  IDS,
  LEASE_STORE,
  LOGGER,
  SERVICE_IDENTITY,
  provide,
  provideClass,
} from '@antiphon/service-host';
import { createFilesOnDisk } from './disk/create-files-on-disk.js';
import { FilesFollower, readFilesFolder } from './disk/files-follower.js';
import { VIRTUAL_FILES } from './files.tokens.js';
import { EraseFiles } from './trees/erase-files.handler.js';
import { FileTreeSnapshots } from './trees/file-tree-snapshots.js';
import { FileTrees } from './trees/file-trees.js';
import { FilesHandler } from './trees/files.handler.js';
import { Files } from './trees/files.js';
import { RewindFiles } from './trees/rewind-files.handler.js';

const providers = [
  provide(
    BlobStore,
    [DATABASE_POOL, CONFIG],
    (pool, { files }) => new BlobStore(pool, files.maxUncitedBytes),
  ),
  provide(FileTreeSnapshots, [DATABASE_POOL], (pool) => new FileTreeSnapshots(pool)),
  provideClass(FileTrees, { store: EVENT_STORE, blobs: BlobStore, snapshots: FileTreeSnapshots, ids: IDS }),
  provideClass(Files, {
    store: EVENT_STORE,
    trees: FileTrees,
    blobs: BlobStore,
    config: CONFIG,
    clock: CLOCK,
    virtual: VIRTUAL_FILES,
  }),
  // Follows the folders of files where `ANTIPHON_FILES_FOLDER` is set.
  provide(
    FilesFollower,
    [CONFIG, ENVIRONMENT, SERVICE_IDENTITY, FileTrees, DATABASE_POOL, LEASE_STORE, CLOCK, LOGGER],
    ({ files }, env, { id: owner }, trees, pool, leases, clock, logger) => {
      const folder = readFilesFolder(env);
      if (folder === null) return new FilesFollower(null);
      const own = { trees, pool, leases, clock, logger, owner, limits: () => files };
      return new FilesFollower(
        createFilesOnDisk({ ...own, folder, keepsExecutable: files.executableOnDisk }),
      );
    },
  ),
];

/** Files of workspaces, and their copies on disk. */
@Global()
@Module({ controllers: [FilesHandler, EraseFiles, RewindFiles], providers, exports: providers })
export class FilesModule {}
