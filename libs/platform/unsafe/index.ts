export {
  batchNatsWrites,
  checkPostgresPatch,
  checkWebSocketPatch,
  createFrameBatcher,
  sendInOneWrite,
} from './batch-writes.js';
export { avoidRequestErrors } from './nats-requests.js';
export { createWorkspaceQuery, PREPARE_WORKSPACE } from './workspace-query.js';
