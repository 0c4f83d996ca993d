import type pg from 'pg';
import { RunEvent, TaskEvent } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { translateDatabaseError } from '@antiphon/database';
import type { RecordedEvent } from '@antiphon/event-store';

interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

/** Names a statement, so that each connection parses and plans it once. */
const named = (name: string, text: string) => ({ name: `agent_tasks_${name}`, text });
const WHERE = 'where workspace = $1 and id = $2';

const QUEUED = named(
  'queued',
  `insert into agent_tasks (workspace, id, kind, title, state, priority, capabilities, agent_id, pinned_to, epoch,
    strikes, project, parent_agent_id, parent_task_id, deadline, queued_at, first_position)
  values ($1, $2, 'task', $3, 'queued', $4, $5, $6, $6, 0, '[]', $7, $8, $9, $10, $11, $12)`,
);
const ASSIGNED = named(
  'assigned',
  `update agent_tasks set state = 'assigned', epoch = $3, worker = $4, agent_id = coalesce($5, agent_id),
    session_id = null, turn_id = null ${WHERE}`,
);
const BEGUN = named(
  'begun',
  `update agent_tasks set state = 'running', session_id = $3, turn_id = $4,
    started_at = coalesce(started_at, $5) ${WHERE}`,
);
// A task that is pinned to no agent may go to any other one.
const REQUEUED = named(
  'requeued',
  `update agent_tasks set state = 'queued', worker = null, agent_id = pinned_to,
    strikes = case when $3::text is null then strikes else strikes || to_jsonb($3::text) end ${WHERE}`,
);
const ENDED = named(
  'ended',
  `update agent_tasks set state = $3, ended_at = $4, result = $5, strikes = $6 ${WHERE}`,
);

const taskStatement = ({ type, data }: TaskEvent, at: RecordedEvent): Statement | null => {
  const id = [at.workspace, data.taskId];
  switch (type) {
    case 'TaskQueued': {
      const about = [data.title, data.priority, JSON.stringify(data.capabilities), data.agentId];
      const place = [data.project, data.parentAgentId, data.parentTaskId, data.deadline];
      return { ...QUEUED, values: [...id, ...about, ...place, data.at, at.position] };
    }
    case 'TaskAssigned':
      return { ...ASSIGNED, values: [...id, data.epoch, data.worker, data.agentId] };
    case 'TaskBegun':
      return { ...BEGUN, values: [...id, data.sessionId, data.turnId, data.at] };
    case 'TaskRequeued': {
      const strike = data.reason === 'failed' ? (data.message ?? data.code ?? 'failed') : null;
      return { ...REQUEUED, values: [...id, strike] };
    }
    case 'TaskEnded': {
      const { status, result, strikes } = data;
      const values = [...id, status, data.at, JSON.stringify(result), JSON.stringify(strikes)];
      return { ...ENDED, values };
    }
    case 'TaskResultRefused':
    case 'TaskCancelRequested':
      return null;
  }
};

const RUN_STARTED = named(
  'run_started',
  `insert into agent_tasks
    (workspace, id, kind, title, state, priority, capabilities, agent_id, epoch, strikes, queued_at, first_position)
  select $1, $2 || '/' || node.id, 'run_node', $3 || ': ' || node.id, 'queued', 5, '[]', node.agent, 0, '[]', $5, $6
  from jsonb_to_recordset($4::jsonb) as node (id text, agent text)`,
);
const NODE_STARTED = named(
  'node_started',
  `update agent_tasks set state = 'running', epoch = $3, worker = 'agent/' || agent_id, session_id = $4,
    turn_id = $5, started_at = coalesce(started_at, $6) ${WHERE}`,
);
const NODE_RETRIED = named(
  'node_retried',
  `update agent_tasks set state = 'queued', worker = null, strikes = strikes || to_jsonb($3::text) ${WHERE}`,
);
const NODE_ENDED = named(
  'node_ended',
  `update agent_tasks set state = $3, ended_at = $4,
    strikes = case when $5::text is null then strikes else strikes || to_jsonb($5::text) end,
    result = jsonb_build_object('status', $3::text, 'text', left($6, 65536), 'sessionId', session_id,
      'turnId', turn_id, 'code', $7::text) ${WHERE}`,
);
// Nodes that never started: '0' is the character after '/'.
const RUN_ENDED = named(
  'run_ended',
  `update agent_tasks set state = 'cancelled', ended_at = $3 where workspace = $1
    and id > $2 || '/' and id < $2 || '0' and ended_at is null`,
);

const nodeEnd = (
  id: readonly unknown[],
  state: string,
  at: string,
  { strike = null, text = '', code = null }: { strike?: string | null; text?: string; code?: string | null },
): Statement => ({ ...NODE_ENDED, values: [...id, state, at, strike, text, code] });

const nodeStatement = (event: RunEvent, workspace: string): Statement | null => {
  const { data } = event;
  const id = [workspace, `${data.runId}/${'nodeId' in data ? data.nodeId : ''}`];
  switch (event.type) {
    case 'TaskStarted': {
      const { attempt, sessionId, turnId, startedAt } = event.data;
      return { ...NODE_STARTED, values: [...id, attempt, sessionId, turnId, startedAt] };
    }
    case 'TaskAttemptFailed':
      return { ...NODE_RETRIED, values: [...id, event.data.message] };
    case 'TaskCompleted':
      return nodeEnd(id, 'completed', event.data.completedAt, { text: event.data.output });
    case 'TaskFailed': {
      const { message, code, failedAt } = event.data;
      return nodeEnd(id, 'failed', failedAt, { strike: message, code });
    }
    case 'TaskCancelled':
      return nodeEnd(id, 'cancelled', event.data.cancelledAt, {});
    default:
      return null;
  }
};

const runStatement = (event: RunEvent, { workspace, position }: RecordedEvent): Statement | null => {
  switch (event.type) {
    case 'RunStarted': {
      const { runId, definition, startedAt } = event.data;
      const nodes = definition.nodes.map(({ id, agent }) => ({ id, agent }));
      const about = [definition.name, JSON.stringify(nodes), startedAt, position];
      return { ...RUN_STARTED, values: [workspace, runId, ...about] };
    }
    case 'RunCompleted':
      return { ...RUN_ENDED, values: [workspace, event.data.runId, event.data.completedAt] };
    case 'RunFailed':
      return { ...RUN_ENDED, values: [workspace, event.data.runId, event.data.failedAt] };
    case 'RunCancelled':
      return { ...RUN_ENDED, values: [workspace, event.data.runId, event.data.cancelledAt] };
    default:
      return nodeStatement(event, workspace);
  }
};

const statementOf = (recorded: RecordedEvent): Statement | null => {
  const event = upcast(recorded);
  return recorded.category === 'run'
    ? runStatement(RunEvent.parse(event), recorded)
    : taskStatement(TaskEvent.parse(event), recorded);
};

/** Projects tasks of the queue and nodes of runs to `agent_tasks`, one statement per event. */
export const projectTasks = async (
  client: pg.ClientBase,
  events: readonly RecordedEvent[],
): Promise<void> => {
  const statements = events.flatMap((event) => statementOf(event) ?? []);
  const results = await Promise.allSettled(statements.map((statement) => client.query(statement)));
  // The first failure causes the later ones.
  const failed = results.find((result) => result.status === 'rejected');
  if (failed) throw translateDatabaseError(failed.reason);
};
