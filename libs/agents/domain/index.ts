export { NO_TURNS, visibleState } from './agent-activity.js';
export type { Activity, VisibleState } from './agent-activity.js';
export { agentTreeDecider, initialTree, subtreeOf, treeQueue } from './agent-tree.decider.js';
export type { AgentTree, AgentTreeCommand, TreeMember } from './agent-tree.decider.js';
export { agentDecider, agentStateOf, failuresWith, holdMs, initialAgent } from './agent.decider.js';
export type { AgentCommand } from './agent-commands.js';
export type { AgentFailure, AgentRecord, AgentStatus } from './agent.decider.js';
