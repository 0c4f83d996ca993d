export { specFor } from './spec-for.js';
export { DATABASE_ROLES, createTestDatabase } from './test-database.js';
export type { DatabaseRole, TestDatabase } from './test-database.js';
