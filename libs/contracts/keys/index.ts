export {
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
  WorkspaceView,
} from './requests.js';
