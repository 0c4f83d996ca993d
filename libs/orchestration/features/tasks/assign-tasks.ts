import type pg from 'pg';
import { acrossWorkspaces, translateDatabaseError } from '@antiphon/database';
import { canReach } from '@antiphon/agents-features';
import type { TaskAgent, TaskAgents } from './task-agents.js';
import type { Lane, OpenTask, TaskQueues } from './task-queues.js';

/** A decision of the delegation: a task and the idle agent that gets it. */
export interface Assignment {
  readonly task: OpenTask;
  readonly agentId: string;
  /** True if the task waited for another agent, which is busy. */
  readonly stolen: boolean;
}

/** Returns whether an agent can do the tasks of a lane. A task names its agent, or capabilities. */
export const canDo = (
  { agentId, capabilities }: Pick<TaskAgent, 'agentId' | 'capabilities'>,
  lane: Lane,
): boolean =>
  lane.agentId === null
    ? lane.capabilities.every((name) => capabilities.includes(name))
    : lane.agentId === agentId;

/** Returns whether the agent that delegates a lane may turn to an agent. Clients may to any. */
export const mayGet = (known: readonly TaskAgent[], { delegatorId }: Lane, agent: TaskAgent): boolean => {
  const from = known.find(({ agentId }) => agentId === delegatorId)?.reach;
  return !from || !agent.reach || canReach(from, agent.reach);
};

/** Returns an unsigned 32-bit hash of a text (FNV-1a). */
const hashOf = (text: string): number => {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return hash;
};

/**
 * Returns the agent whose backlog a task waits in. All tasks of a project have the same one, as
 * long as the agents stay the same.
 */
export const preferredAgent = (
  key: string,
  agents: readonly Pick<TaskAgent, 'agentId'>[],
): string | undefined =>
  agents
    .map(({ agentId }) => ({ agentId, weight: hashOf(`${key}/${agentId}`) }))
    .sort((a, b) => b.weight - a.weight)[0]?.agentId;

const keyOf = (workspace: string, agentId: string): string => `${workspace}\n${agentId}`;

// Turns of tasks do not count: their end is known before the projection has it.
const BUSY_SQL = `select distinct workspace, agent_id from agent_sessions
  where open_turns > 0 and workspace = any ($1) and split_part(session_key, ':', 2) <> 'task'`;

/** Returns the agents with an open turn of no task, as `<workspace>\n<agent>`. */
export const readBusy = async (
  pool: pg.Pool,
  workspaces: readonly string[],
): Promise<ReadonlySet<string>> => {
  try {
    const query = { name: 'agent_busy', text: BUSY_SQL, values: [workspaces] };
    const { rows } = await acrossWorkspaces(pool).query<{ workspace: string; agent_id: string }>(query);
    return new Set(rows.map(({ workspace, agent_id: agentId }) => keyOf(workspace, agentId)));
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

export interface AssignDeps {
  readonly pool: pg.Pool;
  readonly agents: TaskAgents;
  readonly queues: TaskQueues;
}

/**
 * Matches waiting tasks to idle agents, at most `slots` of them: one task for each agent, in the
 * order of the queue. An idle agent takes over what waits for a busy one, if it can do it.
 */
export const matchTasks = async (
  { pool, agents, queues }: AssignDeps,
  slots: number,
): Promise<Assignment[]> => {
  const workspaces = queues.workspacesOfAgents();
  if (workspaces.length === 0 || slots <= 0) return [];
  const busy = new Set(await readBusy(pool, workspaces));
  for (const { workspace, state } of queues.claimed())
    if (state.agentId !== null) busy.add(keyOf(workspace, state.agentId));
  const all = new Map<string, readonly TaskAgent[]>();
  for (const workspace of workspaces) all.set(workspace, await agents.list(workspace));
  const idle = new Map<string, TaskAgent[]>();
  for (const [workspace, known] of all)
    idle.set(
      workspace,
      known.filter(({ agentId, takesWork }) => takesWork && !busy.has(keyOf(workspace, agentId))),
    );
  const matched: Assignment[] = [];
  const isAble = (workspace: string, lane: Lane) => (agent: TaskAgent) =>
    canDo(agent, lane) && mayGet(all.get(workspace) ?? [], lane, agent);
  while (matched.length < slots) {
    const task = queues.pickForAgent((workspace, lane) =>
      (idle.get(workspace) ?? []).some(isAble(workspace, lane)),
    );
    if (!task) break;
    matched.push(takeAgent(task, all.get(task.workspace) ?? [], idle.get(task.workspace) ?? [], isAble));
  }
  return matched;
};

/** Chooses an idle agent for a task, and removes it from the idle ones. */
const takeAgent = (
  task: OpenTask,
  known: readonly TaskAgent[],
  idle: TaskAgent[],
  isAble: (workspace: string, lane: Lane) => (agent: TaskAgent) => boolean,
): Assignment => {
  const { queued } = task.state;
  const { agentId: wanted = null, capabilities = [], parentAgentId: delegatorId = null } = queued ?? {};
  const lane = { agentId: wanted, capabilities, delegatorId };
  const isFit = isAble(task.workspace, lane);
  const able = known.filter((agent) => agent.takesWork && isFit(agent));
  const preferred = preferredAgent(queued?.project ?? task.taskId, able);
  const index = idle.findIndex(({ agentId }) => agentId === preferred);
  const chosen = index >= 0 ? index : idle.findIndex(isFit);
  const [agent] = idle.splice(chosen, 1);
  const agentId = agent?.agentId ?? '';
  return { task, agentId, stolen: lane.agentId === null && agentId !== preferred };
};
