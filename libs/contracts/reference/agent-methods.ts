import { AgentView, listAgents } from '../agent/agent-requests.js';
import { sendAgentMessage } from '../agent/message-requests.js';
import { TaskItem } from '../agent/task-requests.js';
import {
  AgentControlParams,
  AgentListParams,
  AgentMetricsParams,
  AgentMetricsReply,
  AgentParams,
  AgentSpawnParams,
  MessageSendParams,
  TaskCancelParams,
  TaskCreateParams,
  TaskParams,
} from '../gateway/index.js';
import { METRICS_OF_AGENT, SPAWNED_AGENT, TASK } from './agent-examples.js';
import { IDS } from './examples.js';
import { CancelTasksBody, CancelledTasks } from './task-routes.js';
import type { SocketMethod } from './socket-methods.js';

/** Methods of agents and of messages between them. */
export const AGENT_METHODS = [
  {
    name: 'agent.spawn',
    access: 'agents:write',
    feature: 'agent_runtime_v1',
    summary: 'Spawn an agent',
    description:
      'Creates an agent as `POST /api/v1/agents` does. Errors: -32004 for an unknown base or parent, -32009 if the id ' +
      'exists, -32602 with `data.limit` if the tree is full.',
    params: AgentSpawnParams,
    answer: AgentView,
    example: {
      params: { name: 'Researcher', base: 'support', project: 'website', capabilities: ['research'] },
      result: SPAWNED_AGENT,
    },
  },
  {
    name: 'agent.list',
    access: 'agents:read',
    feature: 'agent_runtime_v1',
    summary: 'List agents',
    description:
      'Returns configured and spawned agents. Terminated agents are listed only with that `state`.',
    params: AgentListParams,
    answer: listAgents.reply,
    example: {
      params: { state: 'idle', project: 'website' },
      result: { agents: [SPAWNED_AGENT], nextCursor: null },
    },
  },
  {
    name: 'agent.status',
    access: 'agents:read',
    feature: 'agent_runtime_v1',
    summary: 'Get an agent',
    description: 'Returns one agent with its current state. Errors: -32004 for an unknown agent.',
    params: AgentParams,
    answer: AgentView,
    example: { params: { agentId: SPAWNED_AGENT.id }, result: SPAWNED_AGENT },
  },
  {
    name: 'agent.metrics',
    access: 'agents:read',
    feature: 'agent_runtime_v1',
    summary: 'List the metrics of all agents',
    description: 'Returns what `GET /api/v1/agent-metrics` does. `agents` is a list of ids.',
    params: AgentMetricsParams,
    answer: AgentMetricsReply,
    example: {
      params: { agents: [SPAWNED_AGENT.id], minutes: 30 },
      result: { agents: [METRICS_OF_AGENT], day: '2026-11-22', nextCursor: null },
    },
  },
  {
    name: 'agent.control',
    access: 'agents:write',
    feature: 'agent_runtime_v1',
    summary: 'Pause, resume or terminate an agent',
    description:
      'Changes the state of an agent and of its descendants. A repeated action changes nothing. Errors: -32004 for an ' +
      'unknown agent, -32602 with `data.from` and `data.to` if the state does not allow the action.',
    params: AgentControlParams,
    answer: AgentView,
    example: {
      params: { agentId: SPAWNED_AGENT.id, action: 'pause', reason: 'waits for the customer' },
      result: { ...SPAWNED_AGENT, state: 'paused', reason: 'waits for the customer' },
    },
  },
  {
    name: 'message.send',
    access: 'agents:write',
    feature: 'agent_runtime_v1',
    summary: 'Send a message to agents',
    description:
      'Stores a message for one agent, for the subscribers of a topic, or for every agent of the workspace. Errors: ' +
      '-32004 for an unknown agent, -32602 if the content does not match its type or the agent is terminated.',
    params: MessageSendParams,
    answer: sendAgentMessage.reply,
    example: {
      params: { to: { agent: SPAWNED_AGENT.id }, type: 'AgentSpoke', content: { text: 'Begin with tides.' } },
      result: { messageId: IDS.message },
    },
  },
] as const satisfies readonly SocketMethod[];

/** Methods of tasks. */
export const TASK_METHODS = [
  {
    name: 'task.create',
    access: 'runs:write',
    feature: 'agent_runtime_v1',
    summary: 'Create a task',
    description:
      'Accepts a task as `POST /api/v1/tasks` does. Errors: -32029 with `data.retryAfterSeconds` if the queue is full, ' +
      '-32004 for an unknown agent.',
    params: TaskCreateParams,
    answer: TaskItem,
    example: {
      params: { prompt: 'Collect facts about tide tables.', capabilities: ['research'], priority: 3 },
      result: { ...TASK, state: 'queued', worker: null, agentId: null, epoch: 0, startedAt: null },
    },
  },
  {
    name: 'task.get',
    access: 'runs:read',
    feature: 'agent_runtime_v1',
    summary: 'Get a task',
    description: 'Returns one task with its state and its result. Errors: -32004 for an unknown task.',
    params: TaskParams,
    answer: TaskItem,
    example: { params: { taskId: IDS.task }, result: TASK },
  },
  {
    name: 'task.cancel',
    access: 'runs:write',
    feature: 'agent_runtime_v1',
    summary: 'Cancel a task',
    description:
      'Cancels a task and the turn that works on it. A task that has ended stays as it is. Errors: -32004 for an ' +
      'unknown task.',
    params: TaskCancelParams,
    answer: TaskItem,
    example: {
      params: { taskId: IDS.task, reason: 'not needed any more' },
      result: { ...TASK, state: 'cancelled', endedAt: '2026-11-22T10:22:00.000Z' },
    },
  },
  {
    name: 'task.cancelAll',
    access: 'runs:write',
    feature: 'agent_runtime_v1',
    summary: 'Cancel all open tasks',
    description: 'Cancels open tasks as `POST /api/v1/tasks/cancel` does.',
    params: CancelTasksBody,
    answer: CancelledTasks,
    example: {
      params: { project: 'website', reason: 'the project has ended' },
      result: { cancelled: [IDS.task], nextCursor: null },
    },
  },
] as const satisfies readonly SocketMethod[];
