import { z } from 'zod';
import { AgentStateView, AgentSubscribeParams, AgentUnsubscribeParams } from '../gateway/index.js';
import type { SocketMethod } from './socket-methods.js';

/** Methods that subscribe to typed frames about agents. */
export const AGENT_STREAM_METHODS = [
  {
    name: 'agent.subscribe',
    access: 'agents:read',
    feature: 'agent_runtime_v1',
    summary: 'Subscribe to agents',
    description:
      'Returns the states of the agents, at most 1,000, and sends typed frames `{"type":…}` from then on: ' +
      '`agent_state_update` for one agent or `agent_broadcast_state` for all, `agent.progress`, `agent.blocked`, `agent.plan` ' +
      'and `memory.event`. A client that has not subscribed gets none of them, except `agent_broadcast_state` if it speaks typed ' +
      'frames or has named the capability `agent-states`. While a client reads too slowly, it gets only the newest state of each ' +
      'agent. `blocked` needs `approvals:read`, `plan` `runs:read` and `memory` `memory:read`: by default the kinds without their right are left out. Errors: -32003 for a named kind without its right; -32029 over 100 agents; -32004 for `memory` where `memory_v1` is off.',
    params: AgentSubscribeParams,
    answer: z.object({
      agents: z.array(AgentStateView),
      cursor: z.string().describe('Position of the log that the states belong to, for `events.subscribe`.'),
    }),
    example: {
      params: { agent: 'support' },
      result: { agents: [{ agentId: 'support', state: 'working', phase: 'thinking' }], cursor: 'cDEwMjRlMQ' },
    },
  },
  {
    name: 'agent.unsubscribe',
    access: 'agents:read',
    feature: 'agent_runtime_v1',
    summary: 'End a subscription to agents',
    description: 'Ends the subscription to one agent, or to all agents where `agent` is absent.',
    params: AgentUnsubscribeParams,
    answer: z.object({ unsubscribed: z.boolean().describe('False if there is no such subscription.') }),
    example: { params: { agent: 'support' }, result: { unsubscribed: true } },
  },
] as const satisfies readonly SocketMethod[];
