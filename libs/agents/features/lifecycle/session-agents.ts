import type pg from 'pg';
import type { RecordedEvent } from '@antiphon/event-store';
import { createNamedQuery } from '@antiphon/event-store';

const SESSION_PREFIX = 'session-';

export const keyOf = (workspace: string, id: string): string => `${workspace}\n${id}`;
export const sessionOf = ({ streamId }: RecordedEvent): string => streamId.slice(SESSION_PREFIX.length);

/** Runs a named statement of the projection of agents. */
export const query = createNamedQuery('agent_agents');

const SESSIONS_SQL = `select s.workspace, s.session_id, s.agent_id from agent_session_agents s
  join unnest($1::text[], $2::uuid[]) as k (workspace, id) on s.workspace = k.workspace and s.session_id = k.id`;
const SAVE_SESSIONS_SQL = `insert into agent_session_agents (workspace, session_id, agent_id)
  select * from unnest($1::text[], $2::uuid[], $3::text[]) on conflict do nothing`;

/** Returns the agents of the sessions of a batch, and inserts the new ones. */
export const agentsOfSessions = async (
  client: pg.ClientBase,
  events: readonly RecordedEvent[],
): Promise<ReadonlyMap<string, string>> => {
  const agents = new Map<string, string>();
  const begun = events.filter(({ type }) => type === 'SessionStarted');
  for (const event of begun)
    agents.set(keyOf(event.workspace, sessionOf(event)), String(event.data['agentId']));
  const unknown = new Map<string, RecordedEvent>();
  for (const event of events) {
    const key = keyOf(event.workspace, sessionOf(event));
    if (!agents.has(key)) unknown.set(key, event);
  }
  if (begun.length > 0) {
    const ids = begun.map((event) => String(event.data['agentId']));
    await query(client, 'save_sessions', SAVE_SESSIONS_SQL, [
      begun.map(({ workspace }) => workspace),
      begun.map(sessionOf),
      ids,
    ]);
  }
  if (unknown.size === 0) return agents;
  type Row = { workspace: string; session_id: string; agent_id: string };
  const wanted = [...unknown.values()];
  const values = [wanted.map(({ workspace }) => workspace), wanted.map(sessionOf)];
  for (const row of await query<Row>(client, 'sessions', SESSIONS_SQL, values))
    agents.set(keyOf(row.workspace, row.session_id), row.agent_id);
  return agents;
};
