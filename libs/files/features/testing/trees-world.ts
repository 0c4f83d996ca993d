import { BlobStore, createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import { uuidIds } from '@antiphon/observability';
import { createTestDatabase } from '@antiphon/testing';
import type pg from 'pg';
import { FileTreeSnapshots } from '../trees/file-tree-snapshots.js';
import { FileTrees } from '../trees/file-trees.js';

/** File trees on PostgreSQL, without an agent. */
export interface TreesWorld {
  readonly pool: pg.Pool;
  /** Creates the trees of one process, with a cache of their own. */
  createTrees(): FileTrees;
  close(): Promise<void>;
}

export const createTreesWorld = async (): Promise<TreesWorld> => {
  const database = await createTestDatabase();
  const pool = createPool({ url: database.urlFor('agent'), applicationName: 'spec' });
  return {
    pool,
    createTrees: () =>
      new FileTrees({
        store: createPostgresEventStore(pool),
        blobs: new BlobStore(pool),
        snapshots: new FileTreeSnapshots(pool),
        ids: uuidIds,
      }),
    close: async () => {
      await pool.end();
      await database.drop();
    },
  };
};
