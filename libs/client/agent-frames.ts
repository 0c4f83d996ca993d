import type { AgentFrame } from '@antiphon/contracts/gateway';
import type { Notification } from './client.js';

export type { AgentFrame };

/** Memory learned from a message to an agent, or replaced an entry. */
export type MemoryEvent = Extract<AgentFrame, { readonly type: 'memory.event' }>;

const TYPES: { readonly [T in AgentFrame['type']]: true } = {
  agent_state_update: true,
  agent_broadcast_state: true,
  'agent.progress': true,
  'agent.blocked': true,
  'agent.plan': true,
  'memory.event': true,
  'agent.metrics': true,
};

/**
 * Returns true for a frame about an agent, which `agent.subscribe` asked for. Its `type` then
 * determines its fields.
 */
export const isAgentFrame = (notification: Notification): notification is Notification & AgentFrame =>
  notification.type !== undefined && Object.hasOwn(TYPES, notification.type);
