export { projectApprovals } from './approvals/agent-approvals.projection.js';
export { projectAgentSessions } from './sessions/agent-sessions.projection.js';
export { compareSnapshots } from './sessions/compare-snapshots.js';
