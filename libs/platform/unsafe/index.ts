export {
  batchNatsWrites,
  checkPostgresPatch,
  checkWebSocketPatch,
  createFrameBatcher,
  sendInOneWrite,
} from './batch-writes.js';
