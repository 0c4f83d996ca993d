import { z } from 'zod';
import { forkSession } from '../agent/requests.js';
import { rewindFiles } from '../agent/rewind-requests.js';
import { getSession, listSessions } from '../agent/session-requests.js';
import { SessionHistory } from '../agent/session-history.js';
import { SessionTurn } from '../agent/session-turns.js';
import { asOfReply } from '../log/as-of.js';
import {
  AtQuery,
  ById,
  ExportQuery,
  ForkBody,
  HistoryRangeQuery,
  SessionsQuery,
  TurnsQuery,
} from '../gateway/index.js';
import { FORK, IDS, SESSION_KEY } from './examples.js';
import { defineRoute } from './http-route.js';

const KEY_REUSED = 'the `Idempotency-Key` was used for another request';

/** A session with its cost. */
export const SessionView = getSession.reply.omit({ position: true, head: true }).extend({
  cost: z
    .object({ tokens: z.int().nonnegative(), microUsd: z.int().nonnegative() })
    .nullable()
    .describe('Settled cost of its model calls; null while metering cannot be reached.'),
});
export type SessionView = z.infer<typeof SessionView>;

const SESSION = {
  id: IDS.session,
  key: SESSION_KEY,
  agentId: 'support',
  channel: 'web',
  state: 'waiting' as const,
  turns: 3,
  openTurns: 1,
  pendingApprovals: 1,
  title: 'Where is my order?',
  chat: null,
  forkedFrom: null,
  startedAt: '2026-11-22T10:12:00.000Z',
  lastAt: '2026-11-22T10:14:02.118Z',
  lastPosition: 181_077,
  cost: { tokens: 4_821, microUsd: 21_530 },
};

const TURN = {
  turnId: IDS.turn,
  status: 'completed' as const,
  message: {
    ...{ text: 'Where is my order?', length: 18, at: '2026-11-22T10:14:00.000Z', editedAt: null },
    ...{ isDeleted: false, position: 181_060 },
  },
  ...{ model: 'claude-opus-4-1', answerEditedAt: null, isAnswerDeleted: false },
  items: [
    {
      ...{ kind: 'text' as const, text: 'It arrives tomorrow.', length: 20, provider: 'anthropic' },
      ...{ model: 'claude-opus-4-1', position: 181_076 },
    },
  ],
  ...{ cutBy: null, error: null },
  ...{ endedAt: '2026-11-22T10:14:02.118Z', endVersion: 15, endPosition: 181_077 },
  usage: { calls: 1, inputTokens: 1_204, outputTokens: 12, costMicroUsd: 7_176 },
  ...{ firstVersion: 12, lastVersion: 15, firstPosition: 181_060, lastPosition: 181_077 },
};

const RewindBody = rewindFiles.request.pick({ at: true, dryRun: true });

/** Routes of `/api/v1/sessions`. */
export const SESSION_ROUTES = {
  listSessions: defineRoute({
    method: 'get',
    path: '/api/v1/sessions',
    access: 'sessions:read',
    tag: 'Sessions',
    summary: 'List sessions',
    description:
      'Returns the sessions of the workspace, the most recently active first. `cost` is what their model calls have ' +
      'cost, from the budgets; null while metering cannot be reached.',
    query: SessionsQuery,
    reply: { schema: listSessions.reply.extend({ sessions: z.array(SessionView) }) },
    example: { query: { state: 'waiting' }, reply: { sessions: [SESSION], nextCursor: null } },
  }),
  getSession: defineRoute({
    method: 'get',
    path: '/api/v1/sessions/{id}',
    access: 'sessions:read',
    tag: 'Sessions',
    summary: 'Get a session',
    description: 'Returns one session with its state and its cost.',
    params: ById,
    query: AtQuery,
    reply: { schema: SessionView.extend(asOfReply) },
    example: { params: { id: IDS.session }, reply: SESSION },
    problems: { 404: 'there is no session with this id' },
  }),
  readTurns: defineRoute({
    method: 'get',
    path: '/api/v1/sessions/{id}/turns',
    access: 'sessions:read',
    tag: 'Sessions',
    summary: 'Read the turns of a session',
    description:
      'Returns turns with their messages, tool calls, approvals and cost, in the order of the log, the latest turn ' +
      'first by default. Texts are cut at 65,536 characters; the log has all of them.',
    params: ById,
    query: TurnsQuery,
    reply: {
      schema: z.object({
        turns: z.array(SessionTurn),
        nextCursor: z.string().nullable(),
        ...asOfReply,
      }),
    },
    example: {
      params: { id: IDS.session },
      query: { limit: 20 },
      reply: { turns: [TURN], nextCursor: null },
    },
    problems: { 404: 'there is no session with this id' },
  }),
  readSessionHistory: defineRoute({
    method: 'get',
    path: '/api/v1/sessions/{id}/history',
    access: 'sessions:read',
    tag: 'Sessions',
    summary: 'Read a part of the history of a session',
    description:
      'Returns the latest turns as of `from`, and the events after it up to `to`. The rules of ' +
      'a session fold them to the turns as of any position between, as `GET …/turns?at=` returns them. A page has at most 4 MiB of ' +
      'events. Continue with `from` at `position` while `isLast` is false. What persons deleted is empty.',
    params: ById,
    query: HistoryRangeQuery,
    reply: { schema: SessionHistory },
    example: {
      params: { id: IDS.session },
      query: { from: 181_059, limit: 1 },
      reply: {
        ...{ from: 181_059, position: 181_060, head: 184_203, isLast: false },
        ...{ snapshot: { turns: [] }, deleted: [] },
        events: [
          {
            ...{ version: 12, position: 181_060, recordedAt: '2026-11-22T10:14:00.000Z' },
            event: {
              ...{ type: 'TurnRequested', schemaVersion: 1 },
              data: { turnId: IDS.turn, content: 'Where is my order?' },
            },
          },
        ],
      },
    },
    problems: {
      404: 'there is no session with this id, or it began after `to`',
      422: '`from` or `to` is beyond the head of the log (`LOG.POSITION_AHEAD`)',
    },
  }),
  findTurn: defineRoute({
    method: 'get',
    path: '/api/v1/turns/{id}',
    access: 'sessions:read',
    tag: 'Sessions',
    summary: 'Find the session of a turn',
    description: 'Returns the session that a turn belongs to, and the position of its request.',
    params: ById,
    query: AtQuery,
    reply: {
      schema: z.object({
        turnId: z.uuid(),
        sessionId: z.uuid(),
        firstPosition: z.int().positive().describe('Position of its request in the log.'),
        ...asOfReply,
      }),
    },
    example: {
      params: { id: IDS.turn },
      reply: { turnId: IDS.turn, sessionId: IDS.session, firstPosition: 181_060 },
    },
    problems: { 404: 'there is no turn with this id' },
  }),
  exportSession: defineRoute({
    method: 'get',
    path: '/api/v1/sessions/{id}/export',
    access: 'sessions:read',
    tag: 'Sessions',
    summary: 'Export a session',
    description:
      'Streams all events of a session with their hashes. The hash chain is verified before the first byte is sent. ' +
      '`jsonl` (the default) has a header line, then one event a line; `json` is one document. ' +
      'The same session at the same version always gives the same bytes, until a message of it is deleted: `withheld` marks the events ' +
      'whose texts are left out, and their content no longer has their hash. With `at`, the headers ' +
      '`antiphon-position` and `antiphon-head` have the position and the head of the log.',
    params: ById,
    query: ExportQuery,
    reply: { schema: z.string(), media: 'application/jsonl' },
    example: { params: { id: IDS.session }, query: { format: 'jsonl' } },
    problems: {
      404: 'there is no session with this id',
      500: 'an event differs from what was appended (`LOG.CHAIN_BROKEN`); `detail` names it',
    },
  }),
  forkSession: defineRoute({
    method: 'post',
    path: '/api/v1/sessions/{id}/fork',
    access: 'sessions:write',
    tag: 'Sessions',
    summary: 'Fork a session',
    description:
      'Creates a session that continues from an earlier state of this one. The origin stays unchanged. ' +
      'With `whatIf` the next turns are repeated with another model, and tool results come from the record.',
    params: ById,
    body: ForkBody,
    idempotent: true,
    reply: { schema: forkSession.reply, status: 201 },
    example: { params: { id: IDS.session }, body: { atVersion: 42, model: 'claude-opus-4-1' }, reply: FORK },
    problems: {
      404: 'there is no such session, agent or provider',
      409: KEY_REUSED,
      422: '`atVersion` lies inside a turn (`detail` names the nearest valid ones), or no turn follows it',
    },
  }),
  rewindFiles: defineRoute({
    method: 'post',
    path: '/api/v1/sessions/{id}/files/rewind',
    access: 'files:write',
    tag: 'Sessions',
    summary: 'Rewind the files of a session',
    description:
      'Takes back the changes of files that a session made after one of its events. Deleted files return and new ones go ' +
      'to the bin. Newer changes of others stay, and `conflicts` lists them. `dryRun` only returns the plan.',
    params: ById,
    body: RewindBody,
    idempotent: true,
    reply: { schema: rewindFiles.reply },
    example: {
      params: { id: IDS.session },
      body: { at: 42 },
      reply: {
        version: 18,
        files: [{ path: 'src/new.ts', change: 'deleted', digest: null, before: 'a'.repeat(64) }],
        conflicts: [],
      },
    },
    problems: {
      404: 'there is no session with this id',
      409: KEY_REUSED,
      422: 'the session has fewer events than `at`',
    },
  }),
} as const;
