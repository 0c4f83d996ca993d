import {
  MessageSpec,
  listAgentMessages,
  listTopics,
  listWorkspaceMessages,
  sendAgentMessage,
  subscribeAgent,
} from '../agent/message-requests.js';
import {
  AgentMessageBody,
  AtQuery,
  ByAgentId,
  ByTopic,
  MessagesQuery,
  WorkspaceMessagesQuery,
} from '../gateway/index.js';
import { AGENT_MESSAGE, SPAWNED_AGENT } from './agent-examples.js';
import { IDS } from './examples.js';
import { defineRoute } from './http-route.js';

const AGENT_ID = { id: SPAWNED_AGENT.id };
const BY_TOPIC = { ...AGENT_ID, topic: 'releases' };
const NO_AGENT = { 404: 'there is no agent with this id in the workspace' };
const NOT_OWN = { 403: 'the key of an agent may act only for this agent and its descendants' };
const SENDING = {
  400: 'the message is invalid: `detail` names the field, or the content does not match its type (`MESSAGE.INVALID`)',
  409: 'the `Idempotency-Key` was used for another request',
};

/** Routes of messages between agents, and of the topics of an agent. */
export const MESSAGE_ROUTES = {
  sendMessage: defineRoute({
    method: 'post',
    path: '/api/v1/messages',
    access: 'agents:write',
    tag: 'Messages',
    feature: 'agent_runtime_v1',
    summary: 'Send a message to agents',
    description:
      'Stores a message for one agent, for the subscribers of a topic, or for every agent of the workspace. An agent ' +
      'reads it at its next step. `content` must match the schema of `type` and has at most 65,536 bytes.',
    body: MessageSpec,
    idempotent: true,
    reply: { schema: sendAgentMessage.reply, status: 201 },
    example: {
      body: { to: { topic: 'releases' }, type: 'AgentSpoke', content: { text: 'Version 2 is out.' } },
      reply: { messageId: IDS.message },
    },
    problems: { ...SENDING, 404: 'there is no such agent', 422: 'the recipient is terminated' },
  }),
  sendAgentMessage: defineRoute({
    method: 'post',
    path: '/api/v1/agents/{id}/messages',
    access: 'agents:write',
    tag: 'Messages',
    feature: 'agent_runtime_v1',
    summary: 'Send a message to an agent',
    description: 'Stores a message in the inbox of one agent, which reads it at its next step.',
    params: ByAgentId,
    body: AgentMessageBody,
    idempotent: true,
    reply: { schema: sendAgentMessage.reply, status: 201 },
    example: {
      params: AGENT_ID,
      body: { type: 'AgentSpoke', content: { text: 'Please look at the tide tables first.' } },
      reply: { messageId: IDS.message },
    },
    problems: { ...SENDING, ...NO_AGENT, 422: 'the agent is terminated' },
  }),
  listMessages: defineRoute({
    method: 'get',
    path: '/api/v1/agents/{id}/messages',
    access: 'agents:read',
    tag: 'Messages',
    feature: 'agent_runtime_v1',
    summary: 'List the messages of an agent',
    description:
      'Returns the messages to the agent, to its topics and to everyone, newest first. `isRead` is true once a ' +
      'message is in a context of the agent.',
    params: ByAgentId,
    query: MessagesQuery,
    reply: { schema: listAgentMessages.reply },
    example: {
      params: AGENT_ID,
      query: { limit: 50 },
      reply: { messages: [AGENT_MESSAGE], nextCursor: null },
    },
    problems: NO_AGENT,
  }),
  listWorkspaceMessages: defineRoute({
    method: 'get',
    path: '/api/v1/messages',
    access: 'agents:read',
    tag: 'Messages',
    feature: 'agent_runtime_v1',
    summary: 'List the messages of all agents',
    description:
      'Returns the messages of the workspace, newest first: from whom, to an agent, a topic or everyone, with the id of ' +
      'the event or message that caused each. `isRead` is null for topics and everyone. A page of the key of an agent ' +
      'has only the messages from and to its own tree, and may be shorter than `limit`.',
    query: WorkspaceMessagesQuery,
    reply: { schema: listWorkspaceMessages.reply },
    example: {
      query: { agent: SPAWNED_AGENT.id, limit: 50 },
      reply: { messages: [AGENT_MESSAGE], nextCursor: null },
    },
  }),
  listTopics: defineRoute({
    method: 'get',
    path: '/api/v1/agents/{id}/topics',
    access: 'agents:read',
    tag: 'Messages',
    feature: 'agent_runtime_v1',
    summary: 'List the topics of an agent',
    description:
      'Returns the topics that the agent follows, by name. Every agent gets the messages to everyone.',
    params: ByAgentId,
    query: AtQuery,
    reply: { schema: listTopics.reply },
    example: { params: AGENT_ID, reply: { topics: ['releases'] } },
    problems: NO_AGENT,
  }),
  subscribe: defineRoute({
    method: 'put',
    path: '/api/v1/agents/{id}/topics/{topic}',
    access: 'agents:write',
    tag: 'Messages',
    feature: 'agent_runtime_v1',
    summary: 'Subscribe an agent to a topic',
    description: 'The agent gets every later message of the topic. A repeated request changes nothing.',
    params: ByTopic,
    reply: { schema: subscribeAgent.reply },
    example: { params: BY_TOPIC, reply: { topics: ['releases'] } },
    problems: { ...NO_AGENT, ...NOT_OWN },
  }),
  unsubscribe: defineRoute({
    method: 'delete',
    path: '/api/v1/agents/{id}/topics/{topic}',
    access: 'agents:write',
    tag: 'Messages',
    feature: 'agent_runtime_v1',
    summary: 'End the subscription of an agent',
    description: 'The agent gets no later message of the topic. A repeated request changes nothing.',
    params: ByTopic,
    reply: { schema: subscribeAgent.reply },
    example: { params: BY_TOPIC, reply: { topics: [] } },
    problems: { ...NO_AGENT, ...NOT_OWN },
  }),
} as const;
