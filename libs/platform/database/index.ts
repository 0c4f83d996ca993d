export {
  isConnectionLost,
  isDatabaseError,
  isTransientDatabaseError,
  translateDatabaseError,
} from './database-error.js';
export { migrate, readMigrations } from './migrate.js';
export type { Migration } from './migrate.js';
export { createPipelinedPool } from './pipeline.js';
export type { PipelineOptions } from './pipeline.js';
export { assertDurable, borrowClient, createPool, inTransaction, withRole } from './pool.js';
export type { BorrowedClient, PoolOptions } from './pool.js';
export { backupDatabase } from './backup/backup-database.js';
export type { BackedUpTable, BackupManifest } from './backup/backup-database.js';
export { readManifest, restoreDatabase } from './backup/restore-database.js';
export type { RestoreOptions } from './backup/restore-database.js';
