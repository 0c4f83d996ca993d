import { inWorkspace, type WorkspaceQueries } from '@antiphon/database';
import { createBoundedMap } from '@antiphon/kernel';
import type { Pool } from 'pg';

/** The part of an event that tells which agents it is about. */
export interface AgentEvidence {
  readonly category: string;
  readonly streamId: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Number of streams whose agents are remembered. */
const MAX_STREAMS = 20_000;

/** Types whose `data.agentId` names an agent of the whole event stream. */
const NAMING_TYPES = ['SessionStarted', 'TaskStarted', 'TaskQueued', 'TaskAssigned'];
const STREAM_AGENTS_SQL = `select distinct stream_id, data ->> 'agentId' as agent_id from events
  where workspace = $1 and stream_id = any ($2) and position <= $3
    and type = any ('{${NAMING_TYPES.join(',')}}') and data ->> 'agentId' is not null`;

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/** Returns the agent that an event names itself, null for none. */
const namedAgent = ({ category, data }: AgentEvidence): string | null => {
  if (category !== 'agent' && category !== 'plan') return null;
  const to = data['to'] as { agentId?: unknown } | undefined;
  return textOf(data['agentId']) ?? textOf(to?.agentId);
};

const hasStreamAgents = ({ category }: AgentEvidence): boolean =>
  category === 'session' || category === 'run' || category === 'task';

const NONE: ReadonlySet<string> = new Set();

/**
 * Finds the agents that events of one workspace are about. These are the agents that an event
 * names, the agent of its session, and those of its run or queued task so far. Streams are
 * remembered, so that a live event costs no query.
 */
export class AgentsOfEvents {
  readonly #db: WorkspaceQueries;
  readonly #workspace: string;
  readonly #agents = createBoundedMap<Set<string>>(MAX_STREAMS);

  constructor(pool: Pool, workspace: string) {
    this.#db = inWorkspace(pool, workspace);
    this.#workspace = workspace;
  }

  /** Returns the agents of each event of a page in the log's order, which ends at `upTo`. */
  async find(events: readonly AgentEvidence[], upTo: number): Promise<ReadonlySet<string>[]> {
    const streams = new Set(events.filter(hasStreamAgents).map(({ streamId }) => streamId));
    const unknown = [...streams].filter((stream) => !this.#agents.get(stream));
    if (unknown.length > 0) await this.#load(unknown, upTo);
    return events.map((event) => this.#agentsOf(event));
  }

  async #load(streams: readonly string[], upTo: number): Promise<void> {
    const values = [this.#workspace, streams, upTo];
    const { rows } = await this.#db.query<{ stream_id: string; agent_id: string }>(STREAM_AGENTS_SQL, values);
    for (const stream of streams) this.#agents.put(stream, new Set());
    for (const { stream_id: stream, agent_id: agent } of rows) this.#agents.get(stream)?.add(agent);
  }

  #agentsOf(event: AgentEvidence): ReadonlySet<string> {
    const named = namedAgent(event);
    if (named !== null) return new Set([named]);
    const known = this.#agents.get(event.streamId);
    if (!known) return NONE;
    const agent = NAMING_TYPES.includes(event.type) ? textOf(event.data['agentId']) : null;
    // A copy, because the sets of earlier events stay as they were.
    if (agent !== null && !known.has(agent)) this.#agents.put(event.streamId, new Set([...known, agent]));
    return this.#agents.get(event.streamId) ?? NONE;
  }
}
