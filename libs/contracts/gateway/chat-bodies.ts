import { z } from 'zod';
import { CHAT_ORDERS } from '../agent/chat-requests.js';
import { EditedInput, MAX_REASON_LENGTH } from '../agent/approval-requests.js';
import { AgentId } from '../agent/agent-id.js';
import { BRANCH_FILES, ChatName, MessageId } from '../agent/chat-events.js';
import { WorkspaceId } from '../log/index.js';
import { MessageBody, MessageContent } from '../agent/requests.js';
import { At } from './at.js';
import { ActivityQuery } from './http-bodies.js';

/** Path parameter `id` of the workspace: the one of the credential. */
export const ByWorkspace = z.object({ id: WorkspaceId });

/** Path parameters of a chat. */
export const ByChat = ByWorkspace.extend({
  chat: z.union([z.uuid(), ChatName]).describe('Id or name of the chat.'),
});

/** Path parameters of a message. */
export const ByMessage = ByChat.extend({ message: MessageId });

/** Query of `GET /api/v1/workspaces/:id/chats`. */
export const ChatsQuery = ActivityQuery.extend({
  order: z
    .enum(CHAT_ORDERS)
    .optional()
    .describe(
      '`created`: oldest first. `recent`: the most recently active first. Default: `recent` with a filter.',
    ),
});

/** Query of `GET /api/v1/workspaces/:id/chats/:chat`. */
export const ChatQuery = z.strictObject({
  at: z.coerce.number().int().positive().optional().describe('Version of the chat. Default: the newest.'),
  format: z
    .enum(['md', 'json'])
    .optional()
    .describe('Form of the response. Default: by `Accept`, and Markdown without it.'),
});

/** Command to a chat. `{content}` alone is a message. */
export const ChatCommand = z.discriminatedUnion('command', [
  z.strictObject({ command: z.literal('message').optional(), content: MessageBody }),
  z.strictObject({
    command: z.literal('cancel'),
    turnId: z.uuid().optional().describe('Turn to cancel. Default: the open one and all that wait.'),
  }),
  z.strictObject({
    command: z.literal('attach'),
    path: z.string().min(1).max(1_024).describe('Path of a file. Later turns see its bytes as they are now.'),
  }),
  z.strictObject({
    command: z.literal('detach'),
    path: z.string().min(1).max(1_024).describe('Path of an attached file. Later turns do not see it.'),
  }),
  z.strictObject({
    command: z.enum(['approve', 'deny']),
    approvalId: z.uuid(),
    reason: z.string().max(MAX_REASON_LENGTH).default(''),
    digest: z.string().max(128).optional().describe('Digest that the approver has seen.'),
    input: EditedInput.optional().describe(
      'Arguments that the call gets in the place of the requested ones.',
    ),
  }),
]);
export type ChatCommand = z.infer<typeof ChatCommand>;

/** Reply to a command, sent once its fact is committed. */
export const ChatReply = z.object({
  chatId: z.uuid(),
  sessionId: z.uuid(),
  version: z
    .int()
    .positive()
    .nullable()
    .describe('Version of the chat; null where nothing was written to it.'),
  turnId: z.uuid().nullable().describe('Turn of the message; null for any other command.'),
  cursor: z
    .string()
    .nullable()
    .describe(
      'Event id just before the answer, for `Last-Event-ID`; null if the turn waits for another one.',
    ),
  joined: z.boolean().describe('True if an earlier request with the same key was accepted.'),
});
export type ChatReply = z.infer<typeof ChatReply>;

/** Body that renames a chat. */
export const ChatRenameBody = z.strictObject({ name: ChatName });

/** Body that begins a branch of a chat. */
export const ChatBranchBody = z.strictObject({
  atMessage: z.uuid().describe('Message of a person, which the branch replaces. It continues before it.'),
  files: z
    .enum(BRANCH_FILES)
    .default('shared')
    .describe(
      '`shared`: the branch works in the files of its origin. `own`: in a copy of them as of the message.',
    ),
  content: MessageContent.optional().describe('First message of the branch. Default: none yet.'),
  agent: AgentId.optional().describe('Agent that answers. Default: the one of the chat.'),
});

/** Query of the branches of a chat. */
export const ChatBranchesQuery = z.strictObject({ at: At });

/** Body that edits a message. */
export const MessageEditBody = z.strictObject({ content: MessageContent });

/** Query of the events of a chat. A browser cannot set the header for its first connection. */
export const ChatEventsQuery = z.strictObject({
  last_event_id: z
    .string()
    .max(200)
    .optional()
    .describe('Like the header `Last-Event-ID`, which wins. Default: as `from` says.'),
  from: z
    .enum(['start', 'end'])
    .default('start')
    .describe(
      'Without an event id: all of the chat, or only what follows and the answer that is being given.',
    ),
});
