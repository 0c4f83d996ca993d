import { z } from 'zod';
import { readTurnContext } from '../agent/context-requests.js';
import { At, ById, FindTextsQuery } from '../gateway/index.js';
import { asOfReply } from '../log/as-of.js';
import { IDS } from './examples.js';
import { defineRoute } from './http-route.js';

const TurnParams = z.object({
  id: z.uuid('the id must be a UUID'),
  turn: z.uuid('the id of the turn must be a UUID'),
});

const ContextQuery = z.strictObject({
  attempt: z.coerce
    .number()
    .int()
    .positive()
    .optional()
    .describe('Attempt at a model call, as `ModelCallStarted` numbers it. Default: the newest of the turn.'),
  at: At,
});

const DIGEST = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';

const CONTEXT = {
  ...{ sessionId: IDS.session, turnId: IDS.turn, agentId: 'support' },
  call: {
    ...{ attempt: 3, step: 1, tryNumber: 1, provider: 'anthropic', model: 'claude-opus-4-1' },
    position: 181_061,
  },
  attempts: [3],
  ...{ limitTokens: 8_000, window: 5, tokens: 412, promptHash: DIGEST },
  instructions: {
    ...{ source: 'role_file' as const, path: 'system/agents/support.md', digest: DIGEST },
    ...{ isErased: false, tokens: 180 },
  },
  identity: { tokens: 60 },
  memory: {
    ...{ tokens: 44, position: 181_059, leftOut: 0 },
    facts: [
      {
        ...{ memoryId: IDS.memory, subject: 'user', predicate: 'name', object: 'Alice' },
        ...{ learnedAt: '2026-11-22T10:12:00.000Z', eventId: IDS.event, tokens: 7 },
      },
    ],
  },
  files: [],
  turns: [],
  earlierTurns: 0,
  message: { tokens: 10, received: 0, position: 181_060 },
  results: [],
  tools: [{ name: 'read', tokens: 118 }],
};

/** Routes of the contexts of model calls, and of the texts of a session. */
export const CONTEXT_ROUTES = {
  findTexts: defineRoute({
    method: 'get',
    path: '/api/v1/sessions/{id}/find',
    access: 'sessions:read',
    tag: 'Sessions',
    summary: 'Find a text in a session',
    description:
      'Returns the turns whose message or answer has a text, in the order of the log, 1,000 at most; `total` counts all of them. ' +
      'An edited message has its new text. What persons deleted is not found.',
    params: ById,
    query: FindTextsQuery,
    reply: {
      schema: z.object({
        found: z.array(
          z.object({
            turnId: z.uuid(),
            position: z.int().positive().describe('Position of the request of the turn.'),
          }),
        ),
        total: z.int().nonnegative(),
        ...asOfReply,
      }),
    },
    example: {
      params: { id: IDS.session },
      query: { text: 'order' },
      reply: { found: [{ turnId: IDS.turn, position: 181_060 }], total: 1 },
    },
    problems: { 404: 'there is no session with this id' },
  }),
  readTurnContext: defineRoute({
    method: 'get',
    path: '/api/v1/sessions/{id}/turns/{turn}/context',
    access: 'sessions:read',
    tag: 'Sessions',
    summary: 'Read the context of a model call',
    description:
      'Returns the parts of the prompt of a model call with their estimated tokens: instructions, remembered facts, ' +
      'files, earlier turns, tool results and tools. Prompts are not stored. The parts are built again from the facts ' +
      'before the call. Limits, tools, configured prompts and identity files are the current ones, as no fact records ' +
      'them. `memory` is null without `memory:read`.',
    params: TurnParams,
    query: ContextQuery,
    reply: { schema: readTurnContext.reply },
    example: { params: { id: IDS.session, turn: IDS.turn }, reply: CONTEXT },
    problems: {
      404: 'there is no such session, turn or model call (`TURN.NO_MODEL_CALL`)',
      422: '`at` is beyond the head of the log (`LOG.POSITION_AHEAD`)',
    },
  }),
} as const;
