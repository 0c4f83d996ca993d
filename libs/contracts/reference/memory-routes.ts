import { listTurnsOfEntry } from '../agent/context-requests.js';
import {
  AtQuery,
  EntryTurnsQuery,
  MemoryParams,
  MemoryQuery,
  MemoryQueryParams,
  MemoryRecallParams,
} from '../gateway/index.js';
import { queryMemory, recallMemory, MemoryEntry } from '../memory/index.js';
import { IDS } from './examples.js';
import { defineRoute } from './http-route.js';
import type { SocketMethod } from './socket-methods.js';

const ENTRY = {
  memoryId: IDS.memory,
  kind: 'fact',
  text: 'user name Alice',
  subject: 'user',
  predicate: 'name',
  object: 'Alice',
  confidence: 0.9,
  learnedAt: '2026-11-22T10:15:00.000Z',
  supersededAt: null,
  eventId: IDS.event,
  position: 1_024,
  source: null,
};
const FULL_ENTRY = {
  ...ENTRY,
  source: {
    sessionId: IDS.session,
    turnId: IDS.turn,
    content: 'Hello, my name is Alice.',
    at: '2026-11-22T10:15:00.000Z',
  },
};
const PAGE = { entries: [ENTRY], position: 1_030, head: 1_030 };

/** Routes of `/api/v1/memory`. */
export const MEMORY_ROUTES = {
  queryMemory: defineRoute({
    method: 'get',
    path: '/api/v1/memory',
    access: 'memory:read',
    feature: 'memory_v1',
    tag: 'Memory',
    summary: 'Query memory',
    description:
      'Returns what memory has learned under the key of a session, or in all sessions of an agent: newest first, or the ' +
      'most relevant first where `query` is given. With `at`, the answer is as of that position of the log. `position` ' +
      'is the position of the answer and `head` the newest one. The newest 500 entries are searched.',
    query: MemoryQuery,
    reply: { schema: queryMemory.reply },
    example: { query: { agent: 'support', query: 'name' }, reply: PAGE },
  }),
  recallMemory: defineRoute({
    method: 'get',
    path: '/api/v1/memory/{memoryId}',
    access: 'memory:read',
    feature: 'memory_v1',
    tag: 'Memory',
    summary: 'Recall one entry of memory',
    description:
      'Returns one entry in full, with the message that it was learned from. With `at` the position of the log is ' +
      '`atPosition`, as `position` is that of its event.',
    params: MemoryParams,
    query: AtQuery,
    reply: { schema: recallMemory.reply },
    example: { params: { memoryId: IDS.memory }, reply: FULL_ENTRY },
    problems: { 404: 'There is no such entry in the workspace.' },
  }),
  listTurnsOfEntry: defineRoute({
    method: 'get',
    path: '/api/v1/memory/{memoryId}/turns',
    access: 'memory:read',
    feature: 'memory_v1',
    tag: 'Memory',
    summary: 'List the turns that used an entry',
    description:
      'Returns the turns whose context had this entry, newest first. Contexts are not stored. Each is built again from the ' +
      'facts before its turn, with `[memory] context_tokens` and current identity files. A page compares `limit` turns with ' +
      'the entry, so it may have fewer, or none, and continue at `nextCursor`. `content` is null without `sessions:read`.',
    params: MemoryParams,
    query: EntryTurnsQuery,
    reply: { schema: listTurnsOfEntry.reply },
    example: {
      params: { memoryId: IDS.memory },
      reply: {
        turns: [
          {
            ...{ sessionId: IDS.session, turnId: IDS.turn, agentId: 'support', position: 1_030 },
            ...{ requestedAt: '2026-11-22T10:16:00.000Z', content: 'What is my name?' },
          },
        ],
        nextCursor: null,
      },
    },
    problems: {
      404: 'There is no such entry in the workspace.',
      422: '`at` is beyond the head of the log (`LOG.POSITION_AHEAD`)',
    },
  }),
} as const;

/** Methods of memory. */
export const MEMORY_METHODS = [
  {
    name: 'memory.query',
    access: 'memory:read',
    feature: 'memory_v1',
    summary: 'Query memory',
    description:
      'Returns entries as `GET /api/v1/memory` does. Errors: -32004 for an unknown session or agent.',
    params: MemoryQueryParams,
    answer: queryMemory.reply,
    example: { params: { sessionId: IDS.session, query: 'name' }, result: PAGE },
  },
  {
    name: 'memory.recall',
    access: 'memory:read',
    feature: 'memory_v1',
    summary: 'Recall one entry of memory',
    description:
      'Returns one entry in full, with the message that it was learned from. Errors: -32004 for an unknown entry.',
    params: MemoryRecallParams,
    answer: MemoryEntry,
    example: { params: { memoryId: IDS.memory }, result: FULL_ENTRY },
  },
] as const satisfies readonly SocketMethod[];
