import { z } from 'zod';
import { SearchQuery } from '../gateway/index.js';
import { asOfReply } from '../log/as-of.js';
import { IDS } from './examples.js';
import { defineRoute } from './http-route.js';

/** A thing that a search found, and why. */
export const SearchResult = z.object({
  kind: z.enum(['chat', 'message', 'answer', 'task', 'file', 'agent']),
  id: z.string().describe('Id of the chat, turn, task or agent, or path of the file.'),
  title: z.string().describe('Name of the chat, first message of the session, title of the task, or name.'),
  text: z.string().describe('Text around the first word that was found; empty for names.'),
  sessionId: z.uuid().nullable().describe('Session of a message, an answer or a chat.'),
  chatId: z.string().nullable().describe('Chat of a message or an answer; null for another conversation.'),
  agentId: z.string().nullable(),
  position: z.int().nonnegative().nullable().describe('Position of its event; null for files and agents.'),
  turnPosition: z
    .int()
    .positive()
    .nullable()
    .describe('Position at which the turn of a message or an answer begins.'),
  at: z.iso.datetime().nullable().describe('Time of its event.'),
});
export type SearchResult = z.infer<typeof SearchResult>;

/** Result of a search, as a page. */
export const SearchPage = z.object({
  results: z.array(SearchResult),
  nextCursor: z.string().nullable(),
  searchedTo: z.int().nonnegative().describe('Position down to which the log was searched.'),
  ...asOfReply,
});
export type SearchPage = z.infer<typeof SearchPage>;

/** Route of the search over a workspace. */
export const SEARCH_ROUTES = {
  search: defineRoute({
    method: 'get',
    path: '/api/v1/search',
    access: 'sessions:read',
    tag: 'Sessions',
    summary: 'Search the workspace',
    description:
      'Finds messages, answers, chats, tasks, files and agents by words and beginnings of words, whose order does not ' +
      'count. Agents and files come first, then events of the log, newest first. Deleted and replaced texts are not ' +
      'found. A caller finds only what it may read. A search reads for at most two seconds. Continue with `nextCursor`.',
    query: SearchQuery,
    reply: { schema: SearchPage },
    example: {
      query: { q: 'order tomorrow' },
      reply: {
        results: [
          {
            ...{
              kind: 'answer',
              id: IDS.turn,
              title: 'Where is my order?',
              text: 'Your order arrives tomorrow.',
            },
            ...{ sessionId: IDS.session, chatId: null, agentId: 'support' },
            ...{ position: 181_076, turnPosition: 181_060 },
            at: '2026-11-22T10:14:02.118Z',
          },
        ],
        ...{ nextCursor: null, searchedTo: 0 },
      },
    },
  }),
};
