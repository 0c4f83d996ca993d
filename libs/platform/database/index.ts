export { isConnectionLost, isTransientDatabaseError, translateDatabaseError } from './database-error.js';
export { migrate, readMigrations } from './migrate.js';
export type { Migration } from './migrate.js';
export { assertDurable, createPool, inTransaction, withRole } from './pool.js';
export type { PoolOptions } from './pool.js';
