import { z } from 'zod';
import { asOfReply, asOfRequest } from '../log/as-of.js';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';
import { AgentActor } from './agent-requests.js';
import { AgentId } from './agent-id.js';
import { AgentMessage, MessageType, Topic } from './message-events.js';
import { IdempotencyKey } from './requests.js';

/** A message as a client or an agent sends it. Exactly one of `agent`, `topic` and `everyone`. */
export const MessageSpec = z.strictObject({
  type: MessageType.default('Custom'),
  to: z.union([
    z.strictObject({ agent: AgentId }),
    z.strictObject({ topic: Topic }),
    z.strictObject({ everyone: z.literal(true) }),
  ]),
  content: z
    .record(z.string(), z.json())
    .describe('Checked by the schema of its type; at most 65,536 bytes.'),
  cause: z.string().max(200).optional().describe('Id of the event or message that caused it.'),
});
export type MessageSpec = z.infer<typeof MessageSpec>;

/**
 * Stores a message. Errors: `MESSAGE.INVALID` (content does not match its type),
 * `AGENT.NOT_FOUND`, `AGENT.STATE_CONFLICT` (the recipient is terminated).
 */
export const sendAgentMessage = defineRequest({
  subject: 'cmd.agent.message.send',
  request: z.strictObject({
    workspace: WorkspaceId,
    message: MessageSpec,
    actor: AgentActor,
    idempotencyKey: IdempotencyKey.optional(),
  }),
  reply: z.object({ messageId: z.uuid() }),
  timeoutMs: 10_000,
});

export const MessageItem = AgentMessage.extend({
  logPosition: z.int().positive().describe('Position of the message in the log.'),
  isRead: z.boolean().describe('True once it is in a context of the agent.'),
});

/** Lists the messages of an agent (its own, its topics’ and those to everyone), newest first. */
export const listAgentMessages = defineRequest({
  subject: 'cmd.agent.message.list',
  request: z.strictObject({
    workspace: WorkspaceId,
    agentId: AgentId,
    limit: z.int().min(1).max(500).default(100),
    cursor: z.string().max(500).optional(),
    offset: z.int().min(0).max(100_000).optional(),
    ...asOfRequest,
  }),
  reply: z.object({ messages: z.array(MessageItem), nextCursor: z.string().nullable(), ...asOfReply }),
  timeoutMs: 5_000,
});

/** Subscribes an agent to a topic, or ends the subscription. Repeating it changes nothing. */
export const subscribeAgent = defineRequest({
  subject: 'cmd.agent.message.subscribe',
  request: z.strictObject({
    workspace: WorkspaceId,
    agentId: AgentId,
    topic: Topic,
    subscribed: z.boolean(),
    actor: AgentActor,
  }),
  reply: z.object({ topics: z.array(Topic) }),
  timeoutMs: 5_000,
});

/** A message of the workspace. Each subscriber of a topic reads it at its own time: null. */
export const WorkspaceMessage = AgentMessage.extend({
  logPosition: z.int().positive().describe('Position of the message in the log.'),
  isRead: z
    .boolean()
    .nullable()
    .describe('True once it is in a context of its agent; null for topics and everyone.'),
});
export type WorkspaceMessage = z.infer<typeof WorkspaceMessage>;

/** Filters of the messages of a workspace. */
export const MessageFilter = {
  agent: AgentId.optional().describe('Only messages from or to this agent.'),
  topic: Topic.optional().describe('Only messages of this topic; `everyone` for those to every agent.'),
  type: MessageType.optional(),
  cause: z.string().min(1).max(200).optional().describe('Only messages that this message or event caused.'),
};

/** Lists the messages between all agents of a workspace, newest first. */
export const listWorkspaceMessages = defineRequest({
  subject: 'cmd.agent.message.list-all',
  request: z.strictObject({
    workspace: WorkspaceId,
    ...MessageFilter,
    limit: z.int().min(1).max(500).default(100),
    cursor: z.string().max(500).optional(),
    ...asOfRequest,
  }),
  reply: z.object({ messages: z.array(WorkspaceMessage), nextCursor: z.string().nullable(), ...asOfReply }),
  timeoutMs: 10_000,
});

/** Returns the topics that an agent follows, by name. */
export const listTopics = defineRequest({
  subject: 'cmd.agent.message.list-topics',
  request: z.strictObject({ workspace: WorkspaceId, agentId: AgentId, ...asOfRequest }),
  reply: z.object({ topics: z.array(Topic), ...asOfReply }),
  timeoutMs: 5_000,
});
