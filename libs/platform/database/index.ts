export {
  isConnectionLost,
  isDatabaseError,
  isTransientDatabaseError,
  translateDatabaseError,
} from './database-error.js';
export { migrate, readMigrations } from './migrate.js';
export type { Migration } from './migrate.js';
export {
  assertDurable,
  borrowClient,
  createPipelinedPool,
  createPool,
  inTransaction,
  withRole,
} from './pool.js';
export type { BorrowedClient, PipelineOptions, PoolOptions } from './pool.js';
export { backupDatabase } from './backup/backup-database.js';
export type { BackedUpTable, BackupManifest } from './backup/backup-files.js';
export { readManifest } from './backup/backup-files.js';
export { restoreDatabase } from './backup/restore-database.js';
export type { RestoreOptions } from './backup/restore-database.js';
