import { ChatView, listChatBranches } from '../agent/chat-requests.js';
import { ByChat, ChatBranchBody, ChatBranchesQuery } from '../gateway/index.js';
import { BY_CHAT, CHAT, KEY_REUSED } from './chat-routes.js';
import { IDS } from './examples.js';
import { defineRoute } from './http-route.js';

/** Routes of the branches of chats. */
export const CHAT_BRANCH_ROUTES = {
  branchChat: defineRoute({
    method: 'post',
    path: '/api/v1/workspaces/{id}/chats/{chat}/branches',
    access: 'sessions:write',
    tag: 'Chats',
    summary: 'Begin a branch of a chat',
    description:
      'Creates a chat that continues before a message of this one, which stays unchanged. The branch has the attached files, ' +
      'and with `content` its first message.',
    params: ByChat,
    body: ChatBranchBody,
    idempotent: true,
    reply: { schema: ChatView, status: 201 },
    example: {
      params: BY_CHAT,
      body: { atMessage: IDS.turn, files: 'shared', content: 'When is high tide in Cuxhaven?' },
      reply: {
        ...{ ...CHAT, id: IDS.turn, name: 'tide tables (2)', path: 'tide tables (2).chat' },
        branchOf: {
          ...{ chatId: CHAT.id, sessionId: IDS.session, version: 1, position: 412, turnId: IDS.turn },
          ...{ files: 'shared', rootChatId: CHAT.id },
        },
      },
    },
    problems: {
      404: 'there is no such chat, message or agent',
      409: KEY_REUSED,
    },
  }),
  listChatBranches: defineRoute({
    method: 'get',
    path: '/api/v1/workspaces/{id}/chats/{chat}/branches',
    access: 'sessions:read',
    tag: 'Chats',
    summary: 'List the branches of a chat',
    description: 'Returns the chat with all branches of the same first chat, oldest first, 1,000 at most.',
    params: ByChat,
    query: ChatBranchesQuery,
    reply: { schema: listChatBranches.reply },
    example: { params: BY_CHAT, reply: { chats: [{ ...CHAT, turns: 3 }] } },
    problems: { 404: 'there is no such chat' },
  }),
} as const;
