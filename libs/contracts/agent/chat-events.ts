import { z } from 'zod';
import { event } from '../log/stored-event.js';
import { MediaFacts } from './content-parts.js';

/** Ending of the path under which a chat is listed among the files. */
export const CHAT_SUFFIX = '.chat';

/** Name of a chat: one part of a path, without control characters. */
export const ChatName = z
  .string()
  .min(1)
  .max(100)
  .regex(/^[^\p{Cc}\p{Cs}/\\]+$/u, 'must have no slash, backslash or control character')
  .refine((name) => !name.startsWith('.') && name.trim() === name, 'must not begin with a dot or a space')
  .transform((name) => name.normalize('NFC'));

/** Files of a branch: those of its origin, or a copy as of the message that it replaces. */
export const BRANCH_FILES = ['own', 'shared'] as const;

/** Message at which a branch of a chat begins, and which it replaces. */
export const ChatBranchPoint = z.object({
  chatId: z.uuid(),
  sessionId: z.uuid(),
  /** Version of the session that the branch continues. */
  version: z.int().positive(),
  /** Position of that version in the log. */
  position: z.int().positive(),
  turnId: z.uuid(),
  files: z.enum(BRANCH_FILES),
  /** First chat of all branches. */
  rootChatId: z.uuid(),
});
export type ChatBranchPoint = z.infer<typeof ChatBranchPoint>;

/** A chat begins: a session with an agent that is listed as the virtual file `path`. */
export const ChatCreated = event('ChatCreated', {
  chatId: z.uuid(),
  name: z.string(),
  path: z.string(),
  agentId: z.string(),
  /** Role that was asked for; null where the agent was named or chosen by default. */
  role: z.string().nullable(),
  sessionId: z.uuid(),
  createdBy: z.string(),
  createdAt: z.iso.datetime(),
  /** Only for a branch. */
  branchOf: ChatBranchPoint.optional(),
});
export type ChatCreated = z.infer<typeof ChatCreated>;

/** A chat has a new name, and its virtual file a new path. */
export const ChatRenamed = event('ChatRenamed', {
  chatId: z.uuid(),
  name: z.string(),
  path: z.string(),
  /** Name until now. */
  before: z.string(),
  actor: z.string(),
  at: z.iso.datetime(),
});
export type ChatRenamed = z.infer<typeof ChatRenamed>;

/** A chat ends: its virtual file is gone, and it takes no commands. Its session stays in the log. */
export const ChatDeleted = event('ChatDeleted', {
  chatId: z.uuid(),
  name: z.string(),
  actor: z.string(),
  at: z.iso.datetime(),
});
export type ChatDeleted = z.infer<typeof ChatDeleted>;

const named = { name: z.string(), chatId: z.uuid(), at: z.iso.datetime() };
/** A chat has a name. The stream of the name makes it unique, in any case of its letters. */
export const ChatNameTaken = event('ChatNameTaken', named);
/** A name is free: its chat was renamed or deleted. */
export const ChatNameFreed = event('ChatNameFreed', named);

/** Every event of a `chat-<id>` or `chat-name-<id>` stream. */
export const ChatEvent = z.discriminatedUnion('type', [
  ChatCreated,
  ChatRenamed,
  ChatDeleted,
  ChatNameTaken,
  ChatNameFreed,
]);
export type ChatEvent = z.infer<typeof ChatEvent>;

/** Messages of a turn: the one of the person, and the answer of the agent. */
export const MESSAGE_PARTS = ['message', 'answer'] as const;
export const MessagePart = z.enum(MESSAGE_PARTS);
export type MessagePart = z.infer<typeof MessagePart>;

const changed = { turnId: z.uuid(), part: MessagePart, actor: z.string(), at: z.iso.datetime() };
/** A message has a new text. Later turns see it. The first text stays in the log. */
export const ChatMessageEdited = event('ChatMessageEdited', { ...changed, content: z.string() });
/**
 * A message is deleted. Later turns do not see it. Without the message of the person they do not
 * see the answer either.
 */
export const ChatMessageDeleted = event('ChatMessageDeleted', changed);
/** A snapshot of a file, which later turns see. A later one of the same path replaces it. */
export const ChatFileAttached = event('ChatFileAttached', {
  path: z.string(),
  /** SHA-256 (hex) of its bytes. */
  digest: z.string(),
  size: z.int().nonnegative(),
  /** Absent for a file that models get as text, and in older events. */
  media: MediaFacts.optional(),
  actor: z.string(),
  at: z.iso.datetime(),
});
/** A file is not attached any more. Later turns do not see it. */
export const ChatFileDetached = event('ChatFileDetached', {
  path: z.string(),
  actor: z.string(),
  at: z.iso.datetime(),
});

/**
 * Changes of the messages of a session. Stored in its `session-<id>` stream, so that a context and
 * a fork are folds of one stream.
 */
export const CHAT_CHANGES = [
  ChatMessageEdited,
  ChatMessageDeleted,
  ChatFileAttached,
  ChatFileDetached,
] as const;
export type ChatChange = z.infer<(typeof CHAT_CHANGES)[number]>;

/** Returns the id of the event stream of a chat. */
export const chatStream = (chatId: string): string => `chat-${chatId}`;

const CHAT_KEY = /^[^:]*:chat:files:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
/** Returns the id of the chat of a session, from its session key; null for any other session. */
export const chatOfSessionKey = (sessionKey: string): string | null => CHAT_KEY.exec(sessionKey)?.[1] ?? null;

/** Returns the id of the event stream of a name of chats. */
export const chatNameStream = (nameId: string): string => `chat-name-${nameId}`;

const ANSWER = '-answer';

/** Returns the id of a message in its chat. */
export const messageIdOf = (turnId: string, part: MessagePart): string =>
  part === 'message' ? turnId : `${turnId}${ANSWER}`;

/** Id of a message: `<turnId>` of a person's message, `<turnId>-answer` of the agent's answer. */
export const MessageId = z
  .string()
  .regex(
    /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(-answer)?$/,
    'must be the id of a message: `<turnId>` or `<turnId>-answer`',
  );

/** Returns the turn and the part of a message id. */
export const parseMessageId = (id: string): { readonly turnId: string; readonly part: MessagePart } =>
  id.endsWith(ANSWER)
    ? { turnId: id.slice(0, -ANSWER.length), part: 'answer' }
    : { turnId: id, part: 'message' };
