export { startNatsServer } from './engines/nats-server.js';
export type { TestNatsServer, TestNatsServerOptions } from './engines/nats-server.js';
export { findCircularImports, readFolderImports } from './folder-imports.js';
export type { FolderImport } from './folder-imports.js';
export { growthOf, processorMs } from './linear-time.js';
export { specFor } from './spec-for.js';
export { createCertificates } from './certificates.js';
export type { TestCertificates } from './certificates.js';
export { DATABASE_ROLES, createTestDatabase } from './test-database.js';
export type { DatabaseRole, TestDatabase } from './test-database.js';
export { indexConditions } from './index-conditions.js';
export { createMemoryStarts } from './memory-starts.js';
export type { MemoryStarts } from './memory-starts.js';
export { giveTimeToFail, letTimePass, until } from './waits.js';
export {
  eventStoreContract,
  freshStream,
  freshWorkspace,
  newEvent,
  toStream,
} from './event-store-kit/index.js';
export type { LogUnderTest, MakeLog } from './event-store-kit/index.js';
