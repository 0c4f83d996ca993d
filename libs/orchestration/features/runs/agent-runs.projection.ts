import type pg from 'pg';
import { RunStarted, WorkflowEvent } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { translateDatabaseError } from '@antiphon/database';
import type { ProjectionDefinition, RecordedEvent } from '@antiphon/event-store';

interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

/** Names a statement, so that each connection parses and plans it once. */
const named = (name: string, text: string) => ({ name: `agent_runs_${name}`, text });

const INSERT_RUN = named(
  'insert_run',
  `insert into agent_runs
    (workspace, run_id, workflow_id, name, status, first_agent, started_at, first_position)
  values ($1, $2, $3, $4, 'running', $5, $6, $7)`,
);
const CANCEL_RUN = named(
  'cancel_run',
  `update agent_runs set status = 'cancelling' where workspace = $1 and run_id = $2`,
);
const END_RUN = named(
  'end_run',
  `update agent_runs set status = $3, ended_at = $4 where workspace = $1 and run_id = $2`,
);

const END_OF: Readonly<Record<string, readonly [status: string, timeField: string]>> = {
  RunCompleted: ['completed', 'completedAt'],
  RunFailed: ['failed', 'failedAt'],
  RunCancelled: ['cancelled', 'cancelledAt'],
};

const runStatement = (event: RecordedEvent): Statement | null => {
  const { workspace, type, data, position } = event;
  if (type === 'RunStarted') {
    const { runId, workflowId, definition, startedAt } = RunStarted.shape.data.parse(data);
    const agent = definition.nodes[0]?.agent;
    return {
      ...INSERT_RUN,
      values: [workspace, runId, workflowId, definition.name, agent, startedAt, position],
    };
  }
  if (type === 'RunCancelRequested') return { ...CANCEL_RUN, values: [workspace, data['runId']] };
  const end = END_OF[type];
  return end ? { ...END_RUN, values: [workspace, data['runId'], end[0], data[end[1]]] } : null;
};

const SAVE = named(
  'save',
  `insert into agent_workflows
    (workspace, workflow_id, name, status, version, nodes, open_runs, updated_at, first_position)
  values ($1, $2, $3, 'draft', $4, $5, 0, $6, $7)
  on conflict (workspace, workflow_id) do update set name = excluded.name, status = 'draft',
    version = excluded.version, nodes = excluded.nodes, updated_at = excluded.updated_at`,
);
const WHERE = 'where workspace = $1 and workflow_id = $2';
const VALIDATING = named('validating', `update agent_workflows set status = 'validating' ${WHERE}`);
const VALIDATED = named(
  'validated',
  `update agent_workflows set updated_at = $3,
  status = case when open_runs > 0 then 'running' else 'ready' end ${WHERE}`,
);
const REFUSED = named('refused', `update agent_workflows set status = 'draft', updated_at = $3 ${WHERE}`);
const RUN_STARTED = named(
  'run_started',
  `update agent_workflows set status = 'running', open_runs = open_runs + 1, updated_at = $3 ${WHERE}`,
);
const RUN_ENDED = named(
  'run_ended',
  `update agent_workflows set open_runs = open_runs - 1, updated_at = $3,
  status = case when open_runs > 1 or status <> 'running' then status else $4 end ${WHERE}`,
);
const DELETED = named('deleted', `delete from agent_workflows ${WHERE}`);

const workflowStatement = (recorded: RecordedEvent): Statement | null => {
  const parsed = WorkflowEvent.safeParse(recorded);
  if (!parsed.success) return null;
  const { type, data } = parsed.data;
  const id = [recorded.workspace, data.workflowId];
  switch (type) {
    case 'WorkflowSaved': {
      const { definition, version, savedAt } = data;
      const known = [definition.name, version, definition.nodes.length, savedAt, recorded.position];
      return { ...SAVE, values: [...id, ...known] };
    }
    case 'WorkflowValidationStarted':
      return { ...VALIDATING, values: id };
    case 'WorkflowValidated':
      return { ...VALIDATED, values: [...id, data.validatedAt] };
    case 'WorkflowRefused':
      return { ...REFUSED, values: [...id, data.refusedAt] };
    case 'WorkflowRunStarted':
      return { ...RUN_STARTED, values: [...id, data.startedAt] };
    case 'WorkflowRunEnded':
      return {
        ...RUN_ENDED,
        values: [...id, data.endedAt, data.status === 'completed' ? 'completed' : 'failed'],
      };
    case 'WorkflowDeleted':
      return { ...DELETED, values: id };
  }
};

const statementOf = (event: RecordedEvent): Statement | null =>
  event.category === 'run' ? runStatement(event) : workflowStatement(event);

/**
 * Projects events to `agent_workflows` and `agent_runs`, with one statement per event. Sends all
 * statements at once: a connection in pipeline mode does not wait between them.
 */
const projectRuns = async (client: pg.ClientBase, events: readonly RecordedEvent[]): Promise<void> => {
  const statements = events.flatMap((recorded) => statementOf(upcast(recorded)) ?? []);
  const results = await Promise.allSettled(statements.map((statement) => client.query(statement)));
  // The first failure causes the later ones.
  const failed = results.find((result) => result.status === 'rejected');
  if (failed) throw translateDatabaseError(failed.reason);
};

/** Rows of workflows and runs, for lists and the reconciler. */
export const agentRuns: ProjectionDefinition = {
  name: 'agent-runs',
  service: 'agent',
  categories: ['run', 'workflow'],
  tables: [{ name: 'agent_workflows' }, { name: 'agent_runs' }],
  handle: projectRuns,
};
