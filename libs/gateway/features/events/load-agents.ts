import {
  PHASE_APPROVALS,
  LIFE_EVENTS,
  PHASE_EVENTS,
  TURN_ENDS,
  listOpenSessions,
  sessionStream,
} from '@antiphon/contracts/agent';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import type { RequestClient } from '@antiphon/messaging';
import type { Pool } from 'pg';
import { AgentFold } from './agent-frames.js';
import type { AgentsOfEvents } from './agents-of-events.js';

const list = (types: readonly string[]): string => types.map((type) => `'${type}'`).join(', ');

/** The newest change of each agent's life. The types are literals for the index of rare types. */
const LIVES_SQL = `select distinct on (data ->> 'agentId') data ->> 'agentId' as agent_id, type from events
  where workspace = $1 and type in (${list(LIFE_EVENTS)}) and position <= $2
  order by data ->> 'agentId', position desc`;
/** Returns the event streams of sessions that may have an open turn: the agent service knows them. */
export type FindOpenSessions = (workspace: string, upTo: number) => Promise<readonly string[]>;

/** Asks the agent service for open sessions. */
export const askForOpenSessions =
  (requests: RequestClient): FindOpenSessions =>
  async (workspace, upTo) => {
    const { sessionIds } = await requests.request(listOpenSessions, { workspace, upTo });
    return sessionIds.map(sessionStream);
  };

/** Number of a session's newest events that are read for its open turns. */
const MAX_EVENTS = 2_000;
const TURNS_SQL = `select s.stream_id, e.type, e.event_id, e.position, e.data from unnest($3::text[]) s (stream_id),
  lateral (select position, type, event_id, jsonb_strip_nulls(jsonb_build_object('turnId', data -> 'turnId',
      'attempt', data -> 'attempt', 'approvalId', data -> 'approvalId', 'text', left(data ->> 'text', 1), 'firstTextAt', data -> 'firstTextAt',
      'toolCalls', case when data -> 'toolCalls' -> 0 is not null then '[{}]'::jsonb end)) as data
    from events where workspace = $1 and stream_id = s.stream_id and position <= $2
    order by stream_version desc limit ${MAX_EVENTS}) e
  where e.type in (${list([...PHASE_EVENTS, ...PHASE_APPROVALS, ...TURN_ENDS])}) order by e.position`;

interface TurnRow {
  readonly stream_id: string;
  readonly type: string;
  readonly event_id: string;
  readonly position: string;
  /** The fields that the phase depends on, without the content of texts and calls. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** Reads the state of all agents of a workspace at a position of the log. */
export const loadAgents = async (
  { pool, findOpenSessions }: { readonly pool: Pool; readonly findOpenSessions: FindOpenSessions },
  workspace: string,
  agents: AgentsOfEvents,
  position: number,
): Promise<AgentFold> => {
  const fold = new AgentFold();
  const db = inWorkspace(pool, workspace);
  try {
    const lives = await db.query<{ agent_id: string; type: string }>(LIVES_SQL, [workspace, position]);
    for (const { agent_id: id, type } of lives.rows) fold.apply(id, { type, turnId: null, speech: 'none' });
    const streams = await findOpenSessions(workspace, position);
    const { rows } = await db.query<TurnRow>(TURNS_SQL, [workspace, position, streams]);
    const evidence = rows.map(({ stream_id: streamId, type }) => ({
      category: 'session',
      streamId,
      type,
      data: {},
    }));
    const found = await agents.find(evidence, position);
    for (const [i, { type, event_id: eventId, position: at, data }] of rows.entries())
      for (const agent of found[i] ?? [])
        fold.applyTurn(agent, { type, eventId, position: Number(at), data });
  } catch (error) {
    throw translateDatabaseError(error);
  }
  return fold;
};
