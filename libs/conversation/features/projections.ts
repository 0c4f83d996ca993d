export { projectApprovals } from './approvals/agent-approvals.projection.js';
export { projectAgentSessions } from './sessions/agent-sessions.projection.js';
export { projectGenerations } from './turns/generations.projection.js';
export { ASKED_FOR } from './turns/vendor-figures.js';
export { compareSnapshots } from './sessions/compare-snapshots.js';
