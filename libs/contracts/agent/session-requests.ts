import { z } from 'zod';
import { asOfReply, asOfRequest } from '../log/as-of.js';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';
import { AgentId } from './agent-id.js';

export const SESSION_STATES = ['idle', 'working', 'waiting'] as const;
export const SessionState = z
  .enum(SESSION_STATES)
  .describe('`working`: a turn is open. `waiting`: a turn waits for an approval.');

/** A session as lists show it. */
export const SessionSummary = z.object({
  id: z.uuid(),
  key: z.string().describe('`{agent}:{channel}:{account}:{peer}`, each part percent-escaped.'),
  agentId: z.string(),
  channel: z.string(),
  state: SessionState,
  turns: z.int().nonnegative(),
  openTurns: z.int().nonnegative(),
  pendingApprovals: z.int().nonnegative(),
  title: z
    .string()
    .nullable()
    .describe('Beginning of its first message; null before one, and once it is deleted.'),
  chat: z
    .object({ id: z.uuid(), name: z.string() })
    .nullable()
    .optional()
    .describe('Chat that it belongs to, with its name; null for none, and once the chat is deleted.'),
  forkedFrom: z
    .object({
      sessionId: z.uuid(),
      version: z.int().positive().describe('Last event of the origin that the session continues.'),
      turns: z
        .int()
        .nonnegative()
        .optional()
        .describe(
          'Number of turns that it has from its origin, not in `turns`. Of one session, not in lists.',
        ),
    })
    .nullable()
    .optional()
    .describe('Origin of a fork; null for none.'),
  startedAt: z.iso.datetime(),
  lastAt: z.iso.datetime().nullable().describe('Time of its last activity; null if it is archived.'),
  lastPosition: z.int().nonnegative().describe('Position of its last activity in the log.'),
});
export type SessionSummary = z.infer<typeof SessionSummary>;

/** Filters of a list of sessions. */
export const sessionFilter = {
  agentId: AgentId.optional(),
  /** Text that the agent's id contains, in any case of its letters. */
  agentPart: z.string().max(200).optional(),
  state: SessionState.optional(),
  /** Words of the title as a query of PostgreSQL. An empty one finds nothing. */
  titles: z.string().max(2_000).optional(),
  /** Times of the last activity. */
  since: z.iso.datetime({ offset: true }).optional(),
  until: z.iso.datetime({ offset: true }).optional(),
  limit: z.int().min(1).max(200),
  cursor: z.string().max(200).optional(),
  ...asOfRequest,
};

/** Lists the sessions of a workspace, the most recently active first. */
export const listSessions = defineRequest({
  subject: 'cmd.agent.session.list',
  request: z.strictObject({
    workspace: WorkspaceId,
    ...sessionFilter,
    channel: z.string().max(200).optional(),
    forkedFrom: z.uuid().optional(),
    /** Text that the key contains, in any case of its letters. */
    text: z.string().max(200).optional(),
  }),
  reply: z.object({ sessions: z.array(SessionSummary), nextCursor: z.string().nullable(), ...asOfReply }),
  timeoutMs: 15_000,
});

/** Returns the sessions that may have an open turn at a position of the log, 10,000 at most. */
export const listOpenSessions = defineRequest({
  subject: 'cmd.agent.session.list-open',
  request: z.strictObject({ workspace: WorkspaceId, upTo: z.int().nonnegative() }),
  reply: z.object({ sessionIds: z.array(z.uuid()) }),
  timeoutMs: 15_000,
});

/** Returns one session. Throws `SESSION.NOT_FOUND`. */
export const getSession = defineRequest({
  subject: 'cmd.agent.session.get',
  request: z.strictObject({ workspace: WorkspaceId, sessionId: z.uuid(), ...asOfRequest }),
  reply: SessionSummary.extend(asOfReply),
  timeoutMs: 15_000,
});
