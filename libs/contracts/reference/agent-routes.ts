import { z } from 'zod';
import { AgentSpec } from '../agent/agent-definition.js';
import {
  AgentView,
  listAgents,
  listCapabilities,
  readAgentHistory,
  readAgentMetrics,
} from '../agent/agent-requests.js';
import { AgentMetricsReply } from '../gateway/index.js';
import {
  AgentMetricsQuery,
  AgentPatchBody,
  AgentsQuery,
  ByAgentId,
  HistoryQuery,
  MetricsQuery,
  TerminateQuery,
  AtQuery,
} from '../gateway/index.js';
import { AGENT, AGENT_CHANGE, AGENT_METRICS, METRICS_OF_AGENT, SPAWNED_AGENT } from './agent-examples.js';
import { asOfReply } from '../log/as-of.js';
import { defineRoute } from './http-route.js';

const AGENT_ID = { id: SPAWNED_AGENT.id };
const NO_AGENT = { 404: 'there is no agent with this id in the workspace' };
const NOT_OWN = 'the key of an agent may change only this agent and its descendants';
const ILLEGAL = '`AGENT.STATE_CONFLICT`: the state does not allow the change; `detail` names both states';

/** Routes of `/api/v1/agents`. */
export const AGENT_ROUTES = {
  listAgents: defineRoute({
    method: 'get',
    path: '/api/v1/agents',
    access: 'agents:read',
    tag: 'Agents',
    summary: 'List agents',
    description:
      'Returns configured and spawned agents with their current state. Terminated agents are listed only with ' +
      '`state=terminated`. While an engine is down the list comes from the cache and `stale` is true.',
    query: AgentsQuery,
    reply: {
      schema: listAgents.reply.extend({
        stale: z.literal(true).optional().describe('Present if the list comes from the cache.'),
      }),
    },
    example: {
      query: { state: 'idle', project: 'website' },
      reply: { agents: [AGENT, SPAWNED_AGENT], nextCursor: null },
    },
  }),
  spawnAgent: defineRoute({
    method: 'post',
    path: '/api/v1/agents',
    access: 'agents:write',
    tag: 'Agents',
    feature: 'agent_runtime_v1',
    summary: 'Spawn an agent',
    description:
      'Creates an agent from a definition, as the root of a tree or as the child of `parent`. Fields that are absent ' +
      'come from the configured agent `base`. At a limit of the tree the agent is refused, or waits in the state ' +
      '`spawning` where `whenFull` is `queue`.',
    body: AgentSpec,
    idempotent: true,
    reply: { schema: AgentView, status: 201 },
    example: {
      body: { name: 'Researcher', base: 'support', project: 'website', capabilities: ['research'] },
      reply: SPAWNED_AGENT,
    },
    problems: {
      400: 'the definition is invalid; `detail` names the field',
      403: '`AGENT.NOT_ALLOWED`: the caller may not give the agent this tool or parent',
      404: 'there is no such base or parent',
      409: 'an agent with this id exists, or the `Idempotency-Key` was used for another request',
      422: '`AGENT.LIMIT_REACHED`: the tree is full, and `detail` names the limit. `AGENT.STATE_CONFLICT`: the parent has ended',
    },
  }),
  getAgent: defineRoute({
    method: 'get',
    path: '/api/v1/agents/{id}',
    access: 'agents:read',
    tag: 'Agents',
    summary: 'Get an agent',
    description:
      'Returns one agent with its current state, also after its end. With `at` the position of the log is `atPosition`, ' +
      'because `position` is the agent’s own.',
    params: ByAgentId,
    query: AtQuery,
    reply: { schema: AgentView.extend({ atPosition: asOfReply.position, head: asOfReply.head }) },
    example: { params: { id: AGENT.id }, reply: AGENT },
    problems: NO_AGENT,
  }),
  controlAgent: defineRoute({
    method: 'patch',
    path: '/api/v1/agents/{id}',
    access: 'agents:write',
    tag: 'Agents',
    feature: 'agent_runtime_v1',
    summary: 'Pause, resume or change an agent',
    description:
      'With `action`, pauses an agent and its descendants at the next step of their turns, or resumes them. New turns and ' +
      'tasks of a paused agent are accepted and wait. With fields of a definition, changes the agent for its next model ' +
      'call, the default agent too. A changed field wins over the configuration until null resets it. It needs a key of ' +
      'an operator. A repeated request changes nothing.',
    params: ByAgentId,
    body: AgentPatchBody,
    reply: { schema: AgentView },
    example: {
      params: AGENT_ID,
      body: { action: 'pause', reason: 'waits for the customer' },
      reply: { ...SPAWNED_AGENT, state: 'paused', reason: 'waits for the customer' },
    },
    problems: {
      404: 'there is no agent with this id in the workspace, or no provider with this name',
      403: NOT_OWN,
      422: `${ILLEGAL}, or \`SESSION.NO_MODEL\`: another provider needs a model`,
    },
  }),
  terminateAgent: defineRoute({
    method: 'delete',
    path: '/api/v1/agents/{id}',
    access: 'agents:write',
    tag: 'Agents',
    feature: 'agent_runtime_v1',
    summary: 'Terminate an agent',
    description:
      'Ends an agent and its descendants for good, and cancels their turns and tasks. The history stays readable, ' +
      'and the id is never used again. A repeated request changes nothing.',
    params: ByAgentId,
    query: TerminateQuery,
    reply: { schema: AgentView },
    example: {
      params: AGENT_ID,
      query: { reason: 'its work is done' },
      reply: { ...SPAWNED_AGENT, state: 'terminated', reason: 'its work is done' },
    },
    problems: { ...NO_AGENT, 403: NOT_OWN, 422: ILLEGAL },
  }),
  readHistory: defineRoute({
    method: 'get',
    path: '/api/v1/agents/{id}/history',
    access: 'agents:read',
    tag: 'Agents',
    feature: 'agent_runtime_v1',
    summary: 'Read the history of an agent’s states',
    description: 'Returns the changes of state, newest first, each with the event that caused it.',
    params: ByAgentId,
    query: HistoryQuery,
    reply: { schema: readAgentHistory.reply },
    example: {
      params: AGENT_ID,
      query: { limit: 50 },
      reply: { changes: [AGENT_CHANGE], nextCursor: null },
    },
    problems: NO_AGENT,
  }),
  readMetrics: defineRoute({
    method: 'get',
    path: '/api/v1/agents/{id}/metrics',
    access: 'agents:read',
    tag: 'Agents',
    feature: 'agent_runtime_v1',
    summary: 'Read the metrics of an agent',
    description:
      'Returns samples of processor time, memory, disk, turns and tokens, newest first. A sample covers 30 seconds. ' +
      'They are measurements, not facts: with `at`, those that had ended at the last event up to the position.',
    params: ByAgentId,
    query: MetricsQuery,
    reply: { schema: readAgentMetrics.reply },
    example: { params: AGENT_ID, query: { limit: 120 }, reply: { samples: [AGENT_METRICS] } },
    problems: NO_AGENT,
  }),
  listAgentMetrics: defineRoute({
    method: 'get',
    path: '/api/v1/agent-metrics',
    access: 'agents:read',
    tag: 'Agents',
    feature: 'agent_runtime_v1',
    summary: 'List the metrics of all agents',
    description:
      'Returns the newest sample of each agent, and its tokens and cost of the UTC day. With `agents` and `minutes` ' +
      'also its samples of the last minutes. `today` is null without `budgets:read`. `agent.subscribe` with the frames ' +
      '`metrics` sends each new sample.',
    query: AgentMetricsQuery,
    reply: { schema: AgentMetricsReply },
    example: {
      query: { agents: SPAWNED_AGENT.id, minutes: 30 },
      reply: { agents: [METRICS_OF_AGENT], day: '2026-11-22', nextCursor: null },
    },
  }),
  listCapabilities: defineRoute({
    method: 'get',
    path: '/api/v1/capabilities',
    access: 'agents:read',
    tag: 'Agents',
    feature: 'agent_runtime_v1',
    summary: 'List capabilities',
    description:
      'Returns the capabilities of living agents by name, at most 500, each with the number of its agents and the ' +
      'oldest 100 of them. A task that needs a capability without an agent waits.',
    query: AtQuery,
    reply: { schema: listCapabilities.reply },
    example: {
      reply: {
        capabilities: [
          {
            name: 'research',
            count: 1,
            agents: [{ id: SPAWNED_AGENT.id, name: 'Researcher', state: 'idle' }],
          },
        ],
      },
    },
  }),
} as const;
