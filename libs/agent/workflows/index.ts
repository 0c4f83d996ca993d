export { approval } from './approval.workflow.js';
export type { ApprovalActivities, ApprovalRef, ApprovalTimer } from './approval.workflow.js';
export { agentRun } from './agent-run.workflow.js';
export type { RunActivities, RunProgress, RunRef, TaskResult, TaskToDo } from './agent-run.workflow.js';
export { channelDelivery } from './channel-delivery.workflow.js';
export type {
  ChannelActivities,
  ChannelDeliveryProgress,
  ChannelDeliveryRef,
} from './channel-delivery.workflow.js';
export { toolRetry } from './tool-retry.workflow.js';
export type { ToolActivities, ToolCallRef, ToolRetryProgress } from './tool-retry.workflow.js';
export { sweep } from './sweep.workflow.js';
export type { SweepActivities, SweepInput, SweepName } from './sweep.workflow.js';
