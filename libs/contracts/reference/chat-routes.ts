import { z } from 'zod';
import { ChatChanged, ChatSpec, ChatView, DeletedChat, listChats } from '../agent/chat-requests.js';
import {
  ByChat,
  ByMessage,
  ByWorkspace,
  ChatCommand,
  ChatEventsQuery,
  ChatQuery,
  ChatRenameBody,
  ChatReply,
  ChatsQuery,
  MessageEditBody,
} from '../gateway/index.js';
import { IDS } from './examples.js';
import { defineRoute } from './http-route.js';

/** A chat of the examples. */
export const CHAT = {
  id: '5f0c0e7e-5c4f-5b7d-9f0e-0a1b2c3d4e5f',
  name: 'tide tables',
  path: 'tide tables.chat',
  is_virtual: true,
  agentId: 'support',
  role: null,
  sessionId: IDS.session,
  createdAt: '2026-11-22T10:00:00.000Z',
  revision: 1,
};
const WORKSPACE = { id: 'default' };
/** Path parameters of that chat. */
export const BY_CHAT = { ...WORKSPACE, chat: CHAT.id };
const BY_MESSAGE = { ...BY_CHAT, message: IDS.turn };
/** Problem of a key that belongs to another request. */
export const KEY_REUSED = 'the `Idempotency-Key` was used for another request';
const CHANGED = { reply: { chatId: CHAT.id, version: 9 } };
const CHANGE_PROBLEMS = {
  404: 'there is no such chat, or no such message in it',
  422: 'the turn of the message runs or waits (`CHAT.TURN_OPEN`)',
};

/** Routes of `/api/v1/workspaces/:id/chats`. */
export const CHAT_ROUTES = {
  createChat: defineRoute({
    method: 'post',
    path: '/api/v1/workspaces/{id}/chats',
    access: 'sessions:write',
    tag: 'Chats',
    summary: 'Create a chat',
    description:
      'Creates a session with an agent, which the files list as `<name>.chat`. Its messages are the turns of the session.',
    params: ByWorkspace,
    body: ChatSpec,
    idempotent: true,
    reply: { schema: ChatView, status: 201 },
    example: { params: WORKSPACE, body: { name: 'tide tables', agent: 'support' }, reply: CHAT },
    problems: {
      404: 'there is no such workspace, agent or role',
      409: `the name is taken (\`CHAT.NAME_TAKEN\`), or ${KEY_REUSED}`,
    },
  }),
  listChats: defineRoute({
    method: 'get',
    path: '/api/v1/workspaces/{id}/chats',
    access: 'sessions:read',
    tag: 'Chats',
    summary: 'List chats',
    description:
      'Returns the chats of the workspace, oldest first. A chat is listed as soon as it is created. With `order=recent` or a ' +
      'filter the most recently active is first, and each has its state, turns and last activity.',
    params: ByWorkspace,
    query: ChatsQuery,
    reply: { schema: listChats.reply },
    example: { params: WORKSPACE, query: { limit: 50 }, reply: { chats: [CHAT], nextCursor: null } },
    problems: { 404: 'there is no such workspace' },
  }),
  readChat: defineRoute({
    method: 'get',
    path: '/api/v1/workspaces/{id}/chats/{chat}',
    access: 'sessions:read',
    tag: 'Chats',
    summary: 'Read a chat',
    description:
      'Returns the text of the `.chat` file, rendered from the log: Markdown, or JSON by `Accept` or `format`. ' +
      'The same version always gives the same bytes. The header `ETag` has the version.',
    params: ByChat,
    query: ChatQuery,
    reply: { schema: z.string(), media: 'text/markdown' },
    example: { params: BY_CHAT, query: { at: 12 } },
    problems: { 404: 'there is no such chat, or it has no such version yet' },
  }),
  sendChatCommand: defineRoute({
    method: 'post',
    path: '/api/v1/workspaces/{id}/chats/{chat}',
    access: 'sessions:write',
    tag: 'Chats',
    summary: 'Send a command to a chat',
    description:
      'Appends a message (`{content}` alone is one), attaches a snapshot of a file or takes it away (`detach`), cancels, or decides an approval (which needs `approvals:answer` too). Responds once the ' +
      'fact is committed. The answer of the agent arrives on the events of the chat.',
    params: ByChat,
    body: ChatCommand,
    idempotent: true,
    reply: { schema: ChatReply, status: 202 },
    example: {
      params: BY_CHAT,
      body: { command: 'message', content: 'When is low tide in Cuxhaven?' },
      reply: {
        chatId: CHAT.id,
        sessionId: IDS.session,
        version: 3,
        turnId: IDS.turn,
        cursor: '1.01998f3e6c1a7b529d0e5a4c3b2a1f00.1048575',
        joined: false,
      },
    },
    problems: {
      403: 'this credential may not decide the approval',
      404: 'there is no such chat, turn or approval',
      409: `the approval is already decided, or ${KEY_REUSED}`,
      429: 'too many messages wait',
    },
  }),
  renameChat: defineRoute({
    method: 'patch',
    path: '/api/v1/workspaces/{id}/chats/{chat}',
    access: 'sessions:write',
    tag: 'Chats',
    summary: 'Rename a chat',
    description:
      'Gives the chat another name, and its file another path. The id stays. Old versions keep their name.',
    params: ByChat,
    body: ChatRenameBody,
    reply: { schema: ChatView },
    example: {
      params: BY_CHAT,
      body: { name: 'tides of June' },
      reply: { ...CHAT, name: 'tides of June', path: 'tides of June.chat', revision: 2 },
    },
    problems: {
      404: 'there is no such chat, or it was deleted (`CHAT.DELETED`)',
      409: 'the name is taken (`CHAT.NAME_TAKEN`)',
    },
  }),
  deleteChat: defineRoute({
    method: 'delete',
    path: '/api/v1/workspaces/{id}/chats/{chat}',
    access: 'sessions:write',
    tag: 'Chats',
    summary: 'Delete a chat',
    description:
      'Removes the `.chat` file, frees its name and cancels the turns of the chat. Later commands are refused. ' +
      'The messages stay in its session. A repeat gives the same reply.',
    params: ByChat,
    reply: { schema: DeletedChat },
    example: {
      params: BY_CHAT,
      reply: { id: CHAT.id, name: CHAT.name, deletedAt: '2026-11-23T08:00:00.000Z' },
    },
    problems: { 404: 'there is no such chat' },
  }),
  editMessage: defineRoute({
    method: 'patch',
    path: '/api/v1/workspaces/{id}/chats/{chat}/messages/{message}',
    access: 'sessions:write',
    tag: 'Chats',
    summary: 'Edit a message',
    description:
      'Gives a message of an ended turn a new text, which later turns see. The first text stays in the log.',
    params: ByMessage,
    body: MessageEditBody,
    reply: { schema: ChatChanged },
    example: { params: BY_MESSAGE, body: { content: 'When is high tide in Cuxhaven?' }, ...CHANGED },
    problems: CHANGE_PROBLEMS,
  }),
  deleteMessage: defineRoute({
    method: 'delete',
    path: '/api/v1/workspaces/{id}/chats/{chat}/messages/{message}',
    access: 'sessions:write',
    tag: 'Chats',
    summary: 'Delete a message',
    description:
      'Deletes a message of an ended turn: later turns do not see it. Without the message of a person they do not see ' +
      'its answer either. The text stays in the log.',
    params: ByMessage,
    reply: { schema: ChatChanged },
    example: { params: BY_MESSAGE, ...CHANGED },
    problems: CHANGE_PROBLEMS,
  }),
  streamChat: defineRoute({
    method: 'get',
    path: '/api/v1/workspaces/{id}/chats/{chat}/events',
    access: 'sessions:read',
    tag: 'Chats',
    summary: 'Stream the events of a chat',
    description:
      'Server-sent events: `ready`, then `accepted`, `thought`, `text`, `call`, `observation`, `approval`, `usage`, ' +
      '`restart`, `error` and `done` in the order of the log. The id of an event resumes after it, by `Last-Event-ID`, ' +
      'on any gateway and at any age. Open approvals are sent again after `ready`, without an id. A reader that is too ' +
      'slow gets `behind` and is cut; it resumes without loss.',
    params: ByChat,
    query: ChatEventsQuery,
    reply: { schema: z.string(), media: 'text/event-stream' },
    example: { params: BY_CHAT },
    problems: {
      400: 'the id is malformed (`CHAT.CURSOR_MALFORMED`)',
      404: 'there is no such chat, or its events are archived (`LOG.ARCHIVED`)',
      409: 'the id is of another chat (`CHAT.CURSOR_FOREIGN`), of the log before a restore (`GATEWAY.EPOCH_CHANGED`), or ahead of the chat (`GATEWAY.OFFSET_AHEAD`)',
    },
  }),
} as const;
