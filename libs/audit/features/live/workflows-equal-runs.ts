import type pg from 'pg';
import { open, violation } from '@antiphon/audit-domain';
import type { Finding } from '@antiphon/audit-domain';
import type { TemporalLink } from '@antiphon/temporal';
import { nowhere } from '../audit-report.js';
import type { About } from '../audit-report.js';
import type { Settled } from './settle.js';
import { openInTheLog } from './open-in-the-log.js';

export const workflowsEqualTheLog: About = {
  name: 'workflows-equal-the-log',
  about: 'Temporal waits for exactly what the log says is open, and none of its workflows is stuck',
  counts: 'workflows',
};

/** A workflow that stands for something in the log: `run/<id>`. Schedules' own have other ids. */
const OURS = /^run\//;
/** A task of a workflow that failed this often fails each time: its code does not fit its history. */
const STUCK_ATTEMPTS = 4;
/** Each costs a question to the server. */
const MAX_DESCRIBED = 1_000;

interface OpenWorkflow {
  readonly id: string;
  /** How often its current task was tried. */
  readonly attempt: number;
}

/** Ids are ours and hold no quote; the queue's name comes from the operator. */
const queryFor = (taskQueue: string | undefined): string =>
  `ExecutionStatus = 'Running'${taskQueue === undefined ? '' : ` and TaskQueue = '${taskQueue.replaceAll("'", '')}'`}`;

const openWorkflows = (temporal: TemporalLink, taskQueue: string | undefined): Promise<OpenWorkflow[]> =>
  temporal.use(async ({ workflow }) => {
    const found: OpenWorkflow[] = [];
    for await (const { workflowId, runId } of workflow.list({ query: queryFor(taskQueue) })) {
      if (!OURS.test(workflowId)) continue;
      const described =
        found.length < MAX_DESCRIBED ? await workflow.getHandle(workflowId, runId).describe() : undefined;
      found.push({ id: workflowId, attempt: described?.raw.pendingWorkflowTask?.attempt ?? 0 });
    }
    return found;
  });

const compare = async (pool: pg.Pool, temporal: TemporalLink, taskQueue: string | undefined) => {
  // The log first: what it opens meanwhile is in Temporal without being in it, and is asked for again.
  const inLog = await openInTheLog(pool);
  const workflows = await openWorkflows(temporal, taskQueue);
  const ids = new Set(workflows.map(({ id }) => id));
  return {
    checked: workflows.length,
    stuck: workflows.filter(({ attempt }) => attempt >= STUCK_ATTEMPTS),
    without: [...inLog].filter(([id]) => !ids.has(id)),
    orphans: workflows.filter(({ id }) => !inLog.has(id)),
  };
};

/**
 * Holds Temporal's open workflows against what is open in the log. What is missing there, or has not ended there yet,
 * counts as open: the reconciler looks once a minute.
 */
export const compareWorkflows = async (
  pool: pg.Pool,
  temporal: TemporalLink,
  settled: Settled,
  taskQueue?: string,
): Promise<{ readonly findings: readonly Finding[]; readonly checked: number }> => {
  const { checked, stuck, without, orphans } = await settled(
    () => compare(pool, temporal, taskQueue),
    (now) => now.stuck.length + now.without.length + now.orphans.length === 0,
  );
  const findings = [
    ...stuck.map(({ id, attempt }) =>
      violation(nowhere(''), `workflow ${id} is stuck: its task has been tried ${attempt} times`),
    ),
    ...without.map(([id, place]) => open(place, `the log has ${id} open, and Temporal no workflow for it`)),
    ...orphans.map(({ id }) => open(nowhere(''), `workflow ${id} is open, and nothing in the log is`)),
  ];
  return { findings, checked };
};
