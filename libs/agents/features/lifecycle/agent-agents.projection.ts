import type pg from 'pg';
import { AgentEvent, AgentTreeEvent, isTurnEnd, phaseAfter, speechOf } from '@antiphon/contracts/agent';
import type { AgentStateChange } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { agentDecider, initialAgent, visibleState } from '@antiphon/agents-domain';
import type { Activity, AgentRecord } from '@antiphon/agents-domain';
import type { RecordedEvent } from '@antiphon/event-store';
import { agentsOfSessions, keyOf, query, sessionOf } from './session-agents.js';

/** Rows of one agent, and how a batch of the log changes them. */
interface AgentRows {
  readonly workspace: string;
  readonly agentId: string;
  record: AgentRecord;
  queuedAt: number | null;
  queueLimit: string | null;
  firstPosition: number | null;
  lastPosition: number;
  activity: Activity;
  lastSessionId: string | null;
  lastTurnId: string | null;
  /** Time at which its newest turn began or ended. */
  lastTurnAt: Date | string | null;
  readonly changes: AgentStateChange[];
}

/** Session events that change an agent's state or phase. */
const TURN_EVENTS: ReadonlySet<string> = new Set([
  'SessionStarted',
  'TurnRequested',
  'ModelCallStarted',
  'ModelCallCompleted',
  'ModelCallAborted',
  'ToolCallUnknown',
  'TurnCompleted',
  'TurnFailed',
  'TurnCancelled',
]);
const TREE_PREFIX = 'agent-tree-';

const isTurnEvent = ({ category, type }: RecordedEvent): boolean =>
  category === 'session' && TURN_EVENTS.has(type);

/** Returns the id of the agent that an event is about; null for any other event. */
const agentOf = (event: RecordedEvent, sessions: ReadonlyMap<string, string>): string | null => {
  if (isTurnEvent(event)) return sessions.get(keyOf(event.workspace, sessionOf(event))) ?? null;
  if (event.category !== 'agent') return null;
  const isAgentEvent = event.streamId.startsWith(TREE_PREFIX) || AgentEvent.safeParse(upcast(event)).success;
  return isAgentEvent ? ((event.data['agentId'] as string | undefined) ?? null) : null;
};

interface StoredRow {
  readonly workspace: string;
  readonly agent_id: string;
  readonly record: AgentRecord | null;
  readonly queued_at: string | null;
  readonly queue_limit: string | null;
  readonly first_position: string | null;
  readonly last_position: string | null;
  readonly open_turns: number | null;
  readonly phase: Activity['phase'];
  readonly last_session_id: string | null;
  readonly last_turn_id: string | null;
  readonly last_turn_at: Date | null;
}
const ROWS_SQL = `select k.workspace, k.id as agent_id, a.record, a.queued_at, a.queue_limit, a.first_position, a.last_position,
    t.open_turns, t.phase, t.last_session_id, t.last_turn_id, t.last_turn_at
  from unnest($1::text[], $2::text[]) as k (workspace, id)
  left join agent_agents a on a.workspace = k.workspace and a.agent_id = k.id
  left join agent_activity t on t.workspace = k.workspace and t.agent_id = k.id`;

const toRows = (row: StoredRow): AgentRows => ({
  workspace: row.workspace,
  agentId: row.agent_id,
  record: row.record ?? initialAgent(),
  queuedAt: row.queued_at === null ? null : Number(row.queued_at),
  queueLimit: row.queue_limit,
  firstPosition: row.first_position === null ? null : Number(row.first_position),
  lastPosition: Number(row.last_position ?? 0),
  activity: { openTurns: row.open_turns ?? 0, phase: row.phase },
  lastSessionId: row.last_session_id,
  lastTurnId: row.last_turn_id,
  lastTurnAt: row.last_turn_at,
  changes: [],
});

/** A configured agent without facts works as one that is ready. */
const stateOf = ({ record, activity }: AgentRows) =>
  visibleState(record.status === 'none' && activity.openTurns > 0 ? 'ready' : record.status, activity);

/** Returns the activity of an agent after an event of one of its sessions. */
export const evolveActivity = (
  { openTurns, phase }: Activity,
  { type, data }: { readonly type: string; readonly data: object },
): Activity => {
  const change = type === 'TurnRequested' ? 1 : isTurnEnd(type) ? -1 : 0;
  const open = Math.max(0, openTurns + change);
  return { openTurns: open, phase: phaseAfter(phase, { type, speech: speechOf(data) }, open) };
};

/** Reads only what the rows need, so that a malformed event opens and ends turns like any other. */
const applyTurnEvent = (rows: AgentRows, event: RecordedEvent): void => {
  const { type, data } = upcast(event);
  rows.activity = evolveActivity(rows.activity, { type, data });
  if (type === 'TurnRequested' || isTurnEnd(type)) rows.lastTurnAt = event.recordedAt;
  if (type !== 'TurnCompleted') return;
  rows.lastSessionId = sessionOf(event);
  rows.lastTurnId = String(data['turnId']);
};

const applyTreeEvent = (rows: AgentRows, event: RecordedEvent): void => {
  const parsed = AgentTreeEvent.safeParse(upcast(event));
  if (!parsed.success || parsed.data.type === 'TreeOpened') return;
  const isQueued = parsed.data.type === 'TreeMemberQueued';
  rows.queuedAt = isQueued ? event.position : null;
  rows.queueLimit = parsed.data.type === 'TreeMemberQueued' ? parsed.data.data.limit : null;
  rows.lastPosition = event.position;
};

const applyAgentEvent = (rows: AgentRows, event: RecordedEvent): void => {
  const parsed = AgentEvent.safeParse(upcast(event));
  if (!parsed.success) return;
  rows.record = agentDecider.evolve(rows.record, parsed.data);
  rows.firstPosition ??= event.position;
  rows.lastPosition = event.position;
};

/** Applies one event to the rows of its agent, and adds the change of state that it causes. */
export const applyToAgent = (rows: AgentRows, event: RecordedEvent): void => {
  const before = stateOf(rows);
  if (event.category === 'session') applyTurnEvent(rows, event);
  else if (event.streamId.startsWith(TREE_PREFIX)) applyTreeEvent(rows, event);
  else applyAgentEvent(rows, event);
  const after = stateOf(rows);
  if (after.state === null || (after.state === before.state && after.phase === before.phase)) return;
  const isFact = event.category === 'agent';
  // The log has an answer when it is complete, and the agent spoke since its first text.
  const isSpeaking = after.phase === 'speaking' && event.category === 'session';
  const firstTextAt = event.data['firstTextAt'];
  rows.changes.push({
    from: before.state,
    to: after.state,
    phase: after.phase,
    actor: isFact ? rows.record.actor : 'runtime',
    reason: isFact ? rows.record.reason : null,
    eventId: event.eventId,
    eventPosition: event.position,
    at: isSpeaking && typeof firstTextAt === 'string' ? firstTextAt : event.recordedAt,
  });
};

const SAVE_AGENTS_SQL = `insert into agent_agents as a (workspace, agent_id, record, status, parent_id, root_id, project,
    queued_at, queue_limit, first_position, last_position)
  select * from unnest($1::text[], $2::text[], $3::jsonb[], $4::text[], $5::text[], $6::text[], $7::text[],
    $8::bigint[], $9::text[], $10::bigint[], $11::bigint[])
  on conflict (workspace, agent_id) do update set record = excluded.record, status = excluded.status,
    parent_id = excluded.parent_id, root_id = excluded.root_id, project = excluded.project,
    queued_at = excluded.queued_at, queue_limit = excluded.queue_limit, last_position = excluded.last_position`;
const SAVE_ACTIVITY_SQL = `insert into agent_activity as a
    (workspace, agent_id, open_turns, phase, last_session_id, last_turn_id, last_turn_at)
  select * from unnest($1::text[], $2::text[], $3::integer[], $4::text[], $5::uuid[], $6::uuid[], $7::timestamptz[])
  on conflict (workspace, agent_id) do update set open_turns = excluded.open_turns, phase = excluded.phase,
    last_session_id = excluded.last_session_id, last_turn_id = excluded.last_turn_id,
    last_turn_at = excluded.last_turn_at`;
const SAVE_CHANGES_SQL = `insert into agent_state_changes
    (workspace, agent_id, position, from_state, to_state, phase, actor, reason, event_id, at)
  select * from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::uuid[], $10::timestamptz[])`;

const columns = <T>(rows: readonly T[], ...read: ((row: T) => unknown)[]): unknown[][] =>
  read.map((of) => rows.map(of));

const saveAgents = async (client: pg.ClientBase, rows: readonly AgentRows[]): Promise<void> => {
  const existing = rows.filter(({ record }) => record.status !== 'none');
  if (existing.length === 0) return;
  const values = columns(
    existing,
    (row) => row.workspace,
    (row) => row.agentId,
    (row) => JSON.stringify(row.record),
    (row) => row.record.status,
    (row) => row.record.parentId,
    (row) => row.record.rootId,
    (row) => row.record.definition?.project ?? null,
    (row) => row.queuedAt,
    (row) => row.queueLimit,
    (row) => row.firstPosition ?? row.lastPosition,
    (row) => row.lastPosition,
  );
  await query(client, 'save', SAVE_AGENTS_SQL, values);
};

const saveActivity = async (client: pg.ClientBase, rows: readonly AgentRows[]): Promise<void> => {
  if (rows.length === 0) return;
  const values = columns(
    rows,
    (row) => row.workspace,
    (row) => row.agentId,
    (row) => row.activity.openTurns,
    (row) => row.activity.phase,
    (row) => row.lastSessionId,
    (row) => row.lastTurnId,
    (row) => row.lastTurnAt,
  );
  await query(client, 'save_activity', SAVE_ACTIVITY_SQL, values);
};

const saveChanges = async (client: pg.ClientBase, rows: readonly AgentRows[]): Promise<void> => {
  const changes = rows.flatMap(({ workspace, agentId, changes: own }) =>
    own.map((change) => ({ workspace, agentId, ...change })),
  );
  if (changes.length === 0) return;
  const values = columns(
    changes,
    (row) => row.workspace,
    (row) => row.agentId,
    (row) => row.eventPosition,
    (row) => row.from,
    (row) => row.to,
    (row) => row.phase,
    (row) => row.actor,
    (row) => row.reason,
    (row) => row.eventId,
    (row) => row.at,
  );
  await query(client, 'save_changes', SAVE_CHANGES_SQL, values);
};

/** Applies a batch of the log to the rows of agents, in the transaction that moves the checkpoint. */
export const projectAgents = async (
  client: pg.ClientBase,
  events: readonly RecordedEvent[],
): Promise<void> => {
  const sessions = await agentsOfSessions(client, events.filter(isTurnEvent));
  const relevant = events.flatMap((event) => {
    const agentId = agentOf(event, sessions);
    return agentId === null ? [] : [{ agentId, event }];
  });
  const keys = new Map(
    relevant.map(({ agentId, event: { workspace } }) => [keyOf(workspace, agentId), { workspace, agentId }]),
  );
  if (keys.size === 0) return;
  const wanted = [...keys.values()];
  const stored = await query<StoredRow>(client, 'rows', ROWS_SQL, [
    wanted.map(({ workspace }) => workspace),
    wanted.map(({ agentId }) => agentId),
  ]);
  const rows = new Map(stored.map((row) => [keyOf(row.workspace, row.agent_id), toRows(row)]));
  for (const { agentId, event } of relevant) {
    const own = rows.get(keyOf(event.workspace, agentId));
    if (own) applyToAgent(own, event);
  }
  // Only rows of agents with an event of the category: the rows must not depend on the batches.
  const rowsOf = (category: string): AgentRows[] => {
    const own = relevant.filter(({ event }) => event.category === category);
    const ids = new Set(own.map(({ agentId, event }) => keyOf(event.workspace, agentId)));
    return [...rows].flatMap(([key, row]) => (ids.has(key) ? [row] : []));
  };
  await saveAgents(client, rowsOf('agent'));
  await saveActivity(client, rowsOf('session'));
  await saveChanges(client, [...rows.values()]);
};
