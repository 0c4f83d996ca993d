export { createPrismaClient, inWorkspace } from './prisma-client.js';
export type { OperationalClient, OperationalTables } from './prisma-client.js';
export { translatePrismaError } from './prisma-error.js';
export type {
  ApiKey as ApiKeyRow,
  ProviderCredential as ProviderCredentialRow,
  Workspace as WorkspaceRow,
} from './generated/client.js';
