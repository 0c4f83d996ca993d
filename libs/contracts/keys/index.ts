export {
  AuditRecorded,
  AuditResult,
  KeyCreated,
  KeyEvent,
  KeyRevoked,
  KeyRotated,
  WorkspaceCreated,
  WorkspaceEvent,
  keyStream,
  workspaceStream,
} from './events.js';
export {
  CreateKeyBody,
  CreateWorkspaceBody,
  IssuedKey,
  IssuedWorkspace,
  KeyId,
  KeyView,
  MAX_OVERLAP_S,
  RotateKeyBody,
  SESSION_KEY_NAMES,
  WorkspaceView,
} from './requests.js';
