import { LIFE_EVENTS, PHASE_EVENTS, TURN_ENDS } from '@antiphon/contracts/agent';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import type { Pool } from 'pg';
import { AgentFold } from './agent-frames.js';
import type { AgentsOfEvents } from './agents-of-events.js';

const list = (types: readonly string[]): string => types.map((type) => `'${type}'`).join(', ');

/** The newest change of each agent's life. The types are literals for the index of rare types. */
const LIVES_SQL = `select distinct on (data ->> 'agentId') data ->> 'agentId' as agent_id, type from events
  where workspace = $1 and type in (${list(LIFE_EVENTS)}) and position <= $2
  order by data ->> 'agentId', position desc`;
/** Sessions with an open turn: those of the projection, and those that it has not seen yet. */
const OPEN_SESSIONS_SQL = `select 'session-' || session_id as stream_id from agent_sessions
    where workspace = $1 and open_turns > 0
  union select stream_id from events where workspace = $1 and category = 'session' and position <= $2
    and position > coalesce((select position from projection_checkpoints where name = 'agent-sessions'), 0)
  limit 10000`;
/** Number of a session's newest events that are read for its open turns. */
const MAX_EVENTS = 2_000;
const TURNS_SQL = `select s.stream_id, e.type, e.turn_id, e.has_text from unnest($3::text[]) s (stream_id),
  lateral (select position, type, data ->> 'turnId' as turn_id, coalesce(data ->> 'text', '') <> '' as has_text
    from events where workspace = $1 and stream_id = s.stream_id and position <= $2
    order by stream_version desc limit ${MAX_EVENTS}) e
  where e.type in (${list([...PHASE_EVENTS, ...TURN_ENDS])}) order by e.position`;

interface TurnRow {
  readonly stream_id: string;
  readonly type: string;
  readonly turn_id: string;
  readonly has_text: boolean;
}

/** Reads the state of all agents of a workspace at a position of the log. */
export const loadAgents = async (
  pool: Pool,
  workspace: string,
  agents: AgentsOfEvents,
  position: number,
): Promise<AgentFold> => {
  const fold = new AgentFold();
  const db = inWorkspace(pool, workspace);
  try {
    const lives = await db.query<{ agent_id: string; type: string }>(LIVES_SQL, [workspace, position]);
    for (const { agent_id: id, type } of lives.rows) fold.apply(id, { type, turnId: null, hasText: false });
    const open = await db.query<{ stream_id: string }>(OPEN_SESSIONS_SQL, [workspace, position]);
    const streams = open.rows.map(({ stream_id: stream }) => stream);
    const { rows } = await db.query<TurnRow>(TURNS_SQL, [workspace, position, streams]);
    const evidence = rows.map(({ stream_id: streamId, type }) => ({
      category: 'session',
      streamId,
      type,
      data: {},
    }));
    const found = await agents.find(evidence, position);
    for (const [i, { type, turn_id: turnId, has_text: hasText }] of rows.entries())
      for (const agent of found[i] ?? []) fold.apply(agent, { type, turnId, hasText });
  } catch (error) {
    throw translateDatabaseError(error);
  }
  return fold;
};
