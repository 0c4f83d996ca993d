import type pg from 'pg';
import type { AgentStateChange, TurnPhase } from '@antiphon/contracts/agent';
import type { AgentRecord } from '@antiphon/agents-domain';
import {
  acrossWorkspaces,
  cutListPage,
  inWorkspace,
  listPageSql,
  translateDatabaseError,
} from '@antiphon/database';
import type { ListedRow, ListPage, WorkspaceQueries } from '@antiphon/database';
import type { AgentChange, ReadAgentChanges } from './agent-directory.js';

/** An agent as lists read it. */
export interface AgentRow {
  readonly agentId: string;
  readonly record: AgentRecord;
  readonly openTurns: number;
  readonly phase: TurnPhase | null;
  readonly lastSeenAt: string | null;
  /** Time at which its newest turn began or ended. */
  readonly lastTurnAt: string | null;
  /** Place in the queue of its tree; null if it does not wait. */
  readonly place: number | null;
  readonly limit: 'children' | 'size' | null;
  readonly firstPosition: number;
  readonly lastSessionId: string | null;
  readonly lastTurnId: string | null;
}

interface Stored {
  readonly agent_id: string;
  readonly record: AgentRecord;
  readonly open_turns: number | null;
  readonly phase: TurnPhase | null;
  readonly last_seen_at: Date | null;
  readonly place: string | null;
  readonly queue_limit: 'children' | 'size' | null;
  readonly first_position: string;
  readonly last_session_id: string | null;
  readonly last_turn_id: string | null;
  readonly last_turn_at: Date | null;
}

const COLUMNS = `a.agent_id, a.record, t.open_turns, t.phase, h.last_seen_at, a.queue_limit, a.first_position,
    t.last_session_id, t.last_turn_id, t.last_turn_at,
    case when a.queued_at is not null then (select count(*) from agent_agents q where q.workspace = a.workspace
      and q.root_id = a.root_id and q.queued_at <= a.queued_at) end as place
  from agent_agents a
  left join agent_activity t on t.workspace = a.workspace and t.agent_id = a.agent_id
  left join agent_heartbeats h on h.workspace = a.workspace and h.agent_id = a.agent_id`;
const LIST_SQL = listPageSql(
  `select ${COLUMNS}
  where a.workspace = $1 and ($2::bigint is null or a.first_position > $2)
    and ($4::text is null or a.project = $4) and ($5::text is null or a.parent_id = $5)
    and ($8::text is null or a.record -> 'definition' -> 'capabilities' ? $8)
    and ($9::text is null or a.record -> 'definition' ->> 'model' = $9)
    and ($10::text is null or strpos(lower(concat_ws(' ', a.agent_id, a.record -> 'definition' ->> 'name',
      a.record -> 'definition' ->> 'role', a.project)), lower($10)) > 0)
    and case $6::text when 'idle' then a.status = 'ready' and coalesce(t.open_turns, 0) = 0
      when 'working' then a.status = 'ready' and t.open_turns > 0
      else a.status = $6 or ($6 is null and a.status <> 'terminated') end
  order by a.first_position limit $3 offset $7`,
  'octet_length(r.record::text)',
);
const FIND_SQL = `select ${COLUMNS} where a.workspace = $1 and a.agent_id = any($2::text[])`;
const CONFIGURED_SQL = `select agent_id from agent_agents
  where workspace = $1 and record ->> 'origin' = 'configuration' and status <> 'terminated'`;
const WORKSPACES_SQL = `select workspace from agent_agents union select workspace from agent_sessions`;
const HEAD_SQL = `select coalesce(max(last_position), 0) as position from agent_agents`;
const CHANGES_SQL = `select workspace, agent_id, last_position as position from agent_agents
  where last_position > $1 order by last_position limit 1000`;
const ENDED_SQL = `select a.workspace, a.agent_id, s.session_id from agent_agents a
  join agent_sessions s on s.workspace = a.workspace and s.agent_id = a.agent_id and s.open_turns > 0
  where a.status = 'terminated' limit 500`;
const ORPHANS_SQL = `select c.workspace, c.agent_id from agent_agents c
  join agent_agents p on p.workspace = c.workspace and p.agent_id = c.parent_id and p.status = 'terminated'
  where c.status <> 'terminated' limit 100`;
const BEAT_SQL = `insert into agent_heartbeats as h (workspace, agent_id, owner, last_seen_at)
  select workspace, agent_id, $3, $4 from unnest($1::text[], $2::text[]) as k (workspace, agent_id)
  on conflict (workspace, agent_id) do update set owner = excluded.owner,
    last_seen_at = greatest(h.last_seen_at, excluded.last_seen_at)`;
/** Time of the last sign of work: a heartbeat, or a fact that changed its state or phase. */
const SEEN = `left join agent_heartbeats h on h.workspace = a.workspace and h.agent_id = a.agent_id
  left join lateral (select c.at from agent_state_changes c where c.workspace = a.workspace and c.agent_id = a.agent_id
    order by c.position desc limit 1) c on true
  cross join lateral (select greatest(h.last_seen_at, c.at) as last_seen_at) s`;
/** An agent that waits for an approval needs no process. */
const SILENT_SQL = `select a.workspace, a.agent_id, s.last_seen_at from agent_agents a
  join agent_activity t on t.workspace = a.workspace and t.agent_id = a.agent_id and t.open_turns > 0 ${SEEN}
  where a.status = 'ready' and a.record ->> 'isUnresponsive' = 'false' and s.last_seen_at < $1
    and not exists (select from agent_approvals p
      join agent_session_agents o on o.workspace = p.workspace and o.session_id = p.session_id
      where p.workspace = a.workspace and o.agent_id = a.agent_id and p.status = 'pending')
  limit 100`;
const BACK_SQL = `select a.workspace, a.agent_id, s.last_seen_at from agent_agents a
  left join agent_activity t on t.workspace = a.workspace and t.agent_id = a.agent_id ${SEEN}
  where a.status in ('ready', 'paused') and a.record ->> 'isUnresponsive' = 'true'
    and (coalesce(t.open_turns, 0) = 0 or s.last_seen_at >= $1)
  limit 100`;
const DELETE_CHANGES_SQL = `delete from agent_state_changes where ctid = any(array(
  select ctid from agent_state_changes where at < $1 limit 1000))`;
const HISTORY_SQL = `select from_state, to_state, phase, actor, reason, event_id, position, at from agent_state_changes
  where workspace = $1 and agent_id = $2 and ($3::bigint is null or position < $3) order by position desc limit $4`;

const toRow = (row: Stored): AgentRow => ({
  agentId: row.agent_id,
  record: row.record,
  openTurns: row.open_turns ?? 0,
  phase: row.phase,
  lastSeenAt: row.last_seen_at?.toISOString() ?? null,
  place: row.place === null ? null : Number(row.place),
  limit: row.queue_limit,
  firstPosition: Number(row.first_position),
  lastSessionId: row.last_session_id,
  lastTurnId: row.last_turn_id,
  lastTurnAt: row.last_turn_at?.toISOString() ?? null,
});

export interface AgentRef {
  readonly workspace: string;
  readonly agentId: string;
}
export interface SeenAgent extends AgentRef {
  readonly lastSeenAt: string;
}

export interface ListFilter {
  readonly after: number | null;
  readonly offset: number;
  readonly limit: number;
  readonly project: string | null;
  readonly parent: string | null;
  readonly state: string | null;
  readonly capability: string | null;
  readonly model: string | null;
  /** Part of the id, name, role or project. */
  readonly q: string | null;
}

/** Reads the rows of the projection `agent-agents`. */
export class AgentRows {
  constructor(private readonly pool: pg.Pool) {}

  async list(
    workspace: string,
    { after, offset, limit, project, parent, state, capability, model, q }: ListFilter,
    queries = this.own(workspace),
  ): Promise<ListPage<AgentRow>> {
    const values = [workspace, after, limit + 1, project, parent, state, offset, capability, model, q];
    const rows = await this.run<Stored & ListedRow>(queries, 'list', LIST_SQL, values);
    const { shown, hasMore } = cutListPage(rows, limit);
    return { shown: shown.map(toRow), hasMore };
  }

  async find(
    workspace: string,
    agentIds: readonly string[],
    queries = this.own(workspace),
  ): Promise<AgentRow[]> {
    const values = [workspace, agentIds];
    return (await this.run<Stored>(queries, 'find', FIND_SQL, values)).map(toRow);
  }

  /** Returns the ids of living agents that the configuration has named. */
  async configured(workspace: string): Promise<string[]> {
    const rows = await this.run<{ agent_id: string }>(this.own(workspace), 'configured', CONFIGURED_SQL, [
      workspace,
    ]);
    return rows.map(({ agent_id: id }) => id);
  }

  /** Returns the workspaces that have an agent or a session. */
  async workspaces(): Promise<string[]> {
    const rows = await this.run<{ workspace: string }>(this.all(), 'workspaces', WORKSPACES_SQL, []);
    return rows.map(({ workspace }) => workspace);
  }

  /** Returns sessions with open turns of agents that have ended. */
  async openSessionsOfEnded(): Promise<{ workspace: string; agentId: string; sessionId: string }[]> {
    type Row = { workspace: string; agent_id: string; session_id: string };
    const rows = await this.run<Row>(this.all(), 'ended', ENDED_SQL, []);
    return rows.map(({ workspace, agent_id: agentId, session_id: sessionId }) => ({
      ...{ workspace, agentId, sessionId },
    }));
  }

  async history(
    workspace: string,
    agentId: string,
    before: number | null,
    limit: number,
    queries = this.own(workspace),
  ): Promise<AgentStateChange[]> {
    type Row = Record<'from_state' | 'to_state' | 'phase' | 'actor' | 'reason' | 'event_id', string> & {
      readonly position: string;
      readonly at: Date;
    };
    const values = [workspace, agentId, before, limit];
    const rows = await this.run<Row>(queries, 'history', HISTORY_SQL, values);
    return rows.map((row) => ({
      from: row.from_state as AgentStateChange['from'],
      to: row.to_state as AgentStateChange['to'],
      phase: row.phase as AgentStateChange['phase'],
      actor: row.actor,
      reason: row.reason,
      eventId: row.event_id,
      eventPosition: Number(row.position),
      at: row.at.toISOString(),
    }));
  }

  /** Returns living agents whose parent has ended. */
  orphans(): Promise<AgentRef[]> {
    return this.refs('orphans', ORPHANS_SQL, []);
  }

  /** Records that a process works for these agents, in one statement. */
  async beat(agents: readonly AgentRef[], owner: string, at: Date): Promise<void> {
    const values = [
      agents.map(({ workspace }) => workspace),
      agents.map(({ agentId }) => agentId),
      owner,
      at,
    ];
    await this.run(this.all(), 'beat', BEAT_SQL, values);
  }

  /** Returns working agents without a sign of work since `before`. */
  silent(before: Date): Promise<SeenAgent[]> {
    return this.refs('silent', SILENT_SQL, [before]);
  }

  /** Returns unresponsive agents that work on since `after`, or have no open turn. */
  back(after: Date): Promise<SeenAgent[]> {
    return this.refs('back', BACK_SQL, [after]);
  }

  /** Deletes changes of state before a time, 1,000 at most. */
  async deleteChanges(before: Date): Promise<void> {
    await this.run(this.all(), 'delete_changes', DELETE_CHANGES_SQL, [before]);
  }

  /** Reads the agents that changed after a mark. The mark 0 reads none, and returns the newest. */
  readonly readChanges: ReadAgentChanges = async (mark) => {
    if (mark === 0) {
      const [head] = await this.run<{ position: string }>(this.all(), 'head', HEAD_SQL, []);
      return { changes: [], mark: Number(head?.position ?? 0) };
    }
    type Row = { workspace: string; agent_id: string; position: string };
    const rows = await this.run<Row>(this.all(), 'changes', CHANGES_SQL, [mark]);
    const changes = rows.map(({ workspace, agent_id: id }): AgentChange => ({ workspace, agentIds: [id] }));
    return { changes, mark: Number(rows.at(-1)?.position ?? mark) };
  };

  private async refs(name: string, text: string, values: unknown[]): Promise<SeenAgent[]> {
    type Row = { workspace: string; agent_id: string; last_seen_at?: Date };
    return (await this.run<Row>(this.all(), name, text, values)).map((row) => ({
      workspace: row.workspace,
      agentId: row.agent_id,
      lastSeenAt: row.last_seen_at?.toISOString() ?? '',
    }));
  }

  private own(workspace: string): WorkspaceQueries {
    return inWorkspace(this.pool, workspace);
  }

  private all(): WorkspaceQueries {
    return acrossWorkspaces(this.pool);
  }

  private async run<Row extends pg.QueryResultRow>(
    queries: WorkspaceQueries,
    name: string,
    text: string,
    values: unknown[],
  ): Promise<Row[]> {
    try {
      return (await queries.query<Row>({ name: `agent_rows_${name}`, text, values })).rows;
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }
}
