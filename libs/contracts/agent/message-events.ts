import { z } from 'zod';
import { event } from '../log/stored-event.js';

/** Maximum size of the content of a message between agents, bytes of UTF-8 JSON. */
export const MAX_MESSAGE_BYTES = 64 * 1024;

/** A topic: short, and never part of a subject. */
export const Topic = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_./-]{0,99}$/);

/** Types of messages between agents. Each has a schema of its content (`MESSAGE_CONTENT`). */
export const MESSAGE_TYPES = [
  'AgentSpoke',
  'AgentMoved',
  'TaskAssigned',
  'TaskEnded',
  'ChildEnded',
  'Request',
  'Reply',
  'Custom',
] as const;
export const MessageType = z.enum(MESSAGE_TYPES);
export type MessageType = z.infer<typeof MessageType>;

/** Content of each type of message. `Custom` is any JSON object. */
export const MESSAGE_CONTENT = {
  AgentSpoke: z.strictObject({ text: z.string().min(1) }),
  AgentMoved: z.strictObject({ from: z.string().nullable(), to: z.string() }),
  TaskAssigned: z.strictObject({ taskId: z.uuid(), title: z.string() }),
  TaskEnded: z.strictObject({
    taskId: z.uuid(),
    status: z.string(),
    text: z.string(),
    code: z.string().nullable(),
  }),
  ChildEnded: z.strictObject({
    agentId: z.string(),
    status: z.string(),
    text: z.string(),
    code: z.string().nullable(),
  }),
  Request: z.strictObject({ text: z.string().min(1) }),
  Reply: z.strictObject({ text: z.string(), to: z.uuid() }),
  Custom: z.record(z.string(), z.json()),
} as const satisfies Record<MessageType, z.ZodType>;

/** A message as it is stored and read. */
export const AgentMessage = z.object({
  messageId: z.uuid(),
  type: MessageType,
  /** `agent/<id>`, or the caller of a client's request. */
  from: z.string().min(1).max(200),
  to: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('agent'), agentId: z.string() }),
    z.object({ kind: z.literal('topic'), topic: Topic }),
    /** Every agent of the workspace. */
    z.object({ kind: z.literal('everyone') }),
  ]),
  content: z.record(z.string(), z.json()),
  /** Id of the event or message that caused it; null for a client's message without one. */
  causeId: z.string().max(200).nullable(),
  sentAt: z.iso.datetime(),
});
export type AgentMessage = z.infer<typeof AgentMessage>;

/**
 * A message is accepted. Stored in the recipient's inbox stream, or in the stream of the topic;
 * `everyone` is the topic `everyone`.
 */
export const AgentMessageSent = event('AgentMessageSent', AgentMessage.shape);
const subscription = { agentId: z.string(), topic: Topic, actor: z.string(), at: z.iso.datetime() };
/** The agent gets every later message of the topic. Stored in its inbox stream. */
export const TopicSubscribed = event('TopicSubscribed', subscription);
export const TopicUnsubscribed = event('TopicUnsubscribed', subscription);
/**
 * The agent has read its messages up to a position of the log. Committed with the session's
 * `MessagesReceived`, so that each message is in one context, once.
 */
export const InboxRead = event('InboxRead', {
  agentId: z.string(),
  sessionId: z.uuid(),
  turnId: z.uuid(),
  upTo: z.int().nonnegative(),
  count: z.int().positive(),
});

/** Every event of an `agent-inbox-<id>` or `agent-topic-<id>` stream. */
export const AgentMessageEvent = z.discriminatedUnion('type', [
  AgentMessageSent,
  TopicSubscribed,
  TopicUnsubscribed,
  InboxRead,
]);
export type AgentMessageEvent = z.infer<typeof AgentMessageEvent>;
