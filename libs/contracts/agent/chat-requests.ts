import { z } from 'zod';
import { asOfReply, asOfRequest } from '../log/as-of.js';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';
import { AgentId } from './agent-id.js';
import { BRANCH_FILES, ChatBranchPoint, ChatName, MessagePart } from './chat-events.js';
import { Caller, CallerAgent, IdempotencyKey, MessageContent } from './requests.js';
import { sessionFilter, SessionState } from './session-requests.js';

/** A chat: a session with an agent, listed among the files as `<name>.chat`. */
export const ChatView = z.object({
  id: z.uuid(),
  name: z.string(),
  path: z.string().describe('Path under which the files list the chat: `<name>.chat`.'),
  is_virtual: z
    .literal(true)
    .describe('The file is rendered when it is read. It cannot be written or removed as a file.'),
  agentId: z.string(),
  role: z.string().nullable().describe('Role that was asked for; null if none was.'),
  sessionId: z.uuid().describe('Session that holds the messages.'),
  createdAt: z.iso.datetime(),
  revision: z.int().positive().default(1).describe('1 for a new chat. Each new name adds one.'),
  branchOf: ChatBranchPoint.optional().describe('Message of another chat that this branch replaces.'),
  turnId: z.uuid().optional().describe('Turn of the first message, in the reply to a request that has one.'),
});
export type ChatView = z.infer<typeof ChatView>;

/** Choice of a client for a new chat. */
export const ChatSpec = z.strictObject({
  name: ChatName.optional().describe('Name, unique in the workspace. Default: one that is made of the time.'),
  agent: AgentId.optional().describe('Agent of the chat. Default: the first agent of the workspace.'),
  role: z
    .string()
    .min(1)
    .max(100)
    .optional()
    .describe(
      'Role instead of an agent: the id of an agent, the `role` in its configuration, or a file `system/agents/<role>.md`.',
    ),
  attach: z
    .array(z.string().min(1).max(1_024))
    .max(100)
    .optional()
    .describe('Paths of files that it has from the start, as `attach` does later.'),
  message: MessageContent.optional().describe('First message, accepted together with the chat.'),
});
export type ChatSpec = z.infer<typeof ChatSpec>;

/** Creates a chat with its session. */
export const createChat = defineRequest({
  subject: 'cmd.agent.chat.create',
  request: z.strictObject({
    workspace: WorkspaceId,
    spec: ChatSpec,
    caller: Caller,
    callerAgent: CallerAgent,
    idempotencyKey: IdempotencyKey.optional(),
  }),
  reply: ChatView,
  timeoutMs: 10_000,
});

const IdOrName = z.string().min(1).max(200);

/**
 * Returns one chat, by its id or its name. Errors: `CHAT.NOT_FOUND`, `CHAT.DELETED` for the id of a
 * deleted one.
 */
export const getChat = defineRequest({
  subject: 'cmd.agent.chat.get',
  request: z.strictObject({
    workspace: WorkspaceId,
    chat: IdOrName,
    /** Version of the session at which the name is asked for. Default: now. */
    at: z.int().positive().optional(),
  }),
  reply: ChatView,
  timeoutMs: 5_000,
});

/**
 * Gives a chat another name, and its file another path. Errors: `CHAT.NOT_FOUND`, `CHAT.DELETED`,
 * `CHAT.NAME_TAKEN`, `AGENT.NOT_ALLOWED`.
 */
export const renameChat = defineRequest({
  subject: 'cmd.agent.chat.rename',
  request: z.strictObject({
    workspace: WorkspaceId,
    chat: IdOrName,
    name: ChatName,
    caller: Caller,
    callerAgent: CallerAgent,
  }),
  reply: ChatView,
  timeoutMs: 10_000,
});

/**
 * Begins a branch: a chat that continues before a message of another chat. Errors:
 * `CHAT.NOT_FOUND`, `CHAT.DELETED`, `CHAT.MESSAGE_NOT_FOUND`, `AGENT.NOT_FOUND`.
 */
export const branchChat = defineRequest({
  subject: 'cmd.agent.chat.branch',
  request: z.strictObject({
    workspace: WorkspaceId,
    chat: IdOrName,
    turnId: z.uuid(),
    files: z.enum(BRANCH_FILES),
    content: MessageContent.optional(),
    agent: AgentId.optional(),
    caller: Caller,
    callerAgent: CallerAgent,
    idempotencyKey: IdempotencyKey.optional(),
  }),
  reply: ChatView,
  timeoutMs: 15_000,
});

/** A chat of a family of branches. */
export const FamilyChat = ChatView.extend({
  turns: z.int().nonnegative().describe('Number of its own messages: without those of its origin.'),
});
export type FamilyChat = z.infer<typeof FamilyChat>;

/** Lists a chat with all branches of the same first chat, oldest first, 1,000 at most. */
export const listChatBranches = defineRequest({
  subject: 'cmd.agent.chat.list-branches',
  request: z.strictObject({ workspace: WorkspaceId, chat: IdOrName, ...asOfRequest }),
  reply: z.object({ chats: z.array(FamilyChat), ...asOfReply }),
  timeoutMs: 10_000,
});

/** A deleted chat. */
export const DeletedChat = z.object({ id: z.uuid(), name: z.string(), deletedAt: z.iso.datetime() });
export type DeletedChat = z.infer<typeof DeletedChat>;

/**
 * Deletes a chat and cancels its turns. A repeat finds it deleted. Errors: `CHAT.NOT_FOUND`,
 * `AGENT.NOT_ALLOWED`.
 */
export const deleteChat = defineRequest({
  subject: 'cmd.agent.chat.delete',
  request: z.strictObject({
    workspace: WorkspaceId,
    chat: IdOrName,
    caller: Caller,
    callerAgent: CallerAgent,
  }),
  reply: DeletedChat,
  timeoutMs: 10_000,
});

/** A chat of a list, with what its session does. */
export const ListedChat = ChatView.extend({
  state: SessionState.optional().describe('Only with `order=recent`, as the fields below.'),
  turns: z.int().nonnegative().optional(),
  lastAt: z.iso.datetime().nullable().optional().describe('Time of its last activity; null if archived.'),
  lastPosition: z.int().nonnegative().optional().describe('Position of its last activity in the log.'),
});
export type ListedChat = z.infer<typeof ListedChat>;

export const CHAT_ORDERS = ['created', 'recent'] as const;

/** Lists the chats of a workspace, oldest first, or the most recently active first. */
export const listChats = defineRequest({
  subject: 'cmd.agent.chat.list',
  request: z.strictObject({
    workspace: WorkspaceId,
    /** `created`, the default, has no filters. */
    order: z.enum(CHAT_ORDERS).optional(),
    ...sessionFilter,
  }),
  reply: z.object({
    chats: z.array(ListedChat),
    nextCursor: z
      .string()
      .nullable()
      .describe('Pass it as `cursor` for the next page; null on the last page.'),
    ...asOfReply,
  }),
  timeoutMs: 15_000,
});

/** Result of a change of a chat. */
export const ChatChanged = z.object({
  chatId: z.uuid(),
  version: z.int().positive().describe('Version of the chat after the change.'),
});

const change = {
  workspace: WorkspaceId,
  chatId: z.uuid(),
  sessionId: z.uuid(),
  caller: Caller,
  callerAgent: CallerAgent,
  idempotencyKey: IdempotencyKey.optional(),
};

/** Attaches a read-only snapshot of a file of the workspace, which later turns see. */
export const attachChatFile = defineRequest({
  subject: 'cmd.agent.chat.attach',
  request: z.strictObject({ ...change, path: z.string().min(1).max(1_024) }),
  reply: ChatChanged,
  // A document is read for its pages.
  timeoutMs: 15_000,
});

/** Takes an attached file away. Later turns do not see it. A repeat finds it gone. */
export const detachChatFile = defineRequest({
  subject: 'cmd.agent.chat.detach',
  request: z.strictObject({ ...change, path: z.string().min(1).max(1_024) }),
  reply: ChatChanged,
  timeoutMs: 10_000,
});

/** Edits a message, or deletes it where `content` is null. */
export const changeMessage = defineRequest({
  subject: 'cmd.agent.chat.change',
  request: z.strictObject({
    ...change,
    turnId: z.uuid(),
    part: MessagePart,
    content: MessageContent.nullable(),
  }),
  reply: ChatChanged,
  timeoutMs: 10_000,
});
