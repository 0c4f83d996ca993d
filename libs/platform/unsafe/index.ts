export {
  batchNatsWrites,
  checkPostgresPatch,
  checkWebSocketPatch,
  createFrameBatcher,
  sendInOneWrite,
} from './batch-writes.js';
export { createWorkspaceQuery, PREPARE_WORKSPACE } from './workspace-query.js';
