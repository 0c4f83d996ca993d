export {
  isConnectionLost,
  isDatabaseError,
  isTransientDatabaseError,
  translateDatabaseError,
} from './database-error.js';
export { withDatabaseTls } from './database-tls.js';
export { fetchPages, ROW_AS_JSON } from './fetch-pages.js';
export { readGzipLines } from './gzip-lines.js';
export { cutListPage, listPageSql } from './list-page.js';
export type { ListedRow, ListPage } from './list-page.js';
export type { LineBounds } from './gzip-lines.js';
export { migrate, readMigrations } from './migrate.js';
export type { Migration } from './migrate.js';
export {
  assertDurable,
  borrowClient,
  createPipelinedPool,
  createSeparatePool,
  createPool,
  inTransaction,
  withRole,
} from './pool.js';
export type { BorrowedClient, PipelineOptions, PoolOptions } from './pool.js';
export { backupDatabase } from './backup/backup-database.js';
export type { BackedUpTable, BackupManifest } from './backup/backup-files.js';
export { readManifest } from './backup/backup-files.js';
export { assertNoRestore, holdDatabase } from './backup/hold-database.js';
export type { DatabaseHold, HoldOptions } from './backup/hold-database.js';
export {
  adoptDatabase,
  listRestores,
  restoreDatabase,
  resumeRestore,
  undoRestore,
} from './backup/restore-database.js';
export type { Restored, RestoreOptions } from './backup/restore-database.js';
export { readRestores } from './backup/restore-record.js';
export type { RestorePhase, RestoreRecord } from './backup/restore-record.js';
export {
  ALL_WORKSPACES,
  acrossWorkspaces,
  inWorkspace,
  queryInWorkspace,
  setWorkspaceSql,
} from './workspace.js';
export type { WorkspaceQueries } from './workspace.js';
export { createWorkStarts } from './work-starts.js';
export type { WorkStarts } from './work-starts.js';
export { MAX_LOST_PROCESSES, WorkTrials } from './work-trials.js';
export { BlobStore, CITE_SQL, PATH_SQL, SWEEP_SQL } from './blob-store.js';
export type { StoredBytes } from './blob-store.js';
