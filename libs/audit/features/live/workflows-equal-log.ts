import type pg from 'pg';
import { open, violation } from '@antiphon/audit-domain';
import type { Finding } from '@antiphon/audit-domain';
import type { TemporalLink } from '@antiphon/temporal';
import { nowhere } from '../audit-report.js';
import type { About } from '../audit-report.js';
import type { Settled } from './settle.js';
import { waitingInTheLog } from './waiting-in-the-log.js';
import type { Waiting } from './waiting-in-the-log.js';

export const workflowsEqualTheLog: About = {
  name: 'workflows-equal-the-log',
  about: 'Temporal waits for exactly what the log says is open, and none of its workflows is stuck',
  counts: 'workflows',
};

/** A workflow that stands for something in the log. Schedules' own have other ids. */
const OURS = /^(?:run|approval|tool)\//;
/** A task of a workflow that failed this often fails each time: its code does not fit its history. */
const STUCK_ATTEMPTS = 4;
/** Each costs a question to the server. */
const MAX_DESCRIBED = 1_000;
/** The reconciler looks once a minute; one round may fail, and one be skipped. */
const RECONCILE_MS = 180_000;

interface OpenWorkflow {
  readonly id: string;
  /** How often its current task was tried. */
  readonly attempt: number;
  readonly startedAt: Date;
}

/** Ids are ours and hold no quote; the queue's name comes from the operator. */
const queryFor = (taskQueue: string | undefined): string =>
  `ExecutionStatus = 'Running'${taskQueue === undefined ? '' : ` and TaskQueue = '${taskQueue.replaceAll("'", '')}'`}`;

const openWorkflows = (temporal: TemporalLink, taskQueue: string | undefined): Promise<OpenWorkflow[]> =>
  temporal.use(async ({ workflow }) => {
    const found: OpenWorkflow[] = [];
    for await (const { workflowId, runId, startTime } of workflow.list({ query: queryFor(taskQueue) })) {
      if (!OURS.test(workflowId)) continue;
      const described =
        found.length < MAX_DESCRIBED ? await workflow.getHandle(workflowId, runId).describe() : undefined;
      found.push({
        id: workflowId,
        attempt: described?.raw.pendingWorkflowTask?.attempt ?? 0,
        startedAt: startTime,
      });
    }
    return found;
  });

const nowOf = async (pool: pg.Pool): Promise<Date> =>
  (await pool.query<{ now: Date }>('select clock_timestamp() as now')).rows[0]?.now ?? new Date(0);

/** What differs and what the reconciler, or a timer, has had no time yet to bring right is merely open. */
const missing = (waiting: ReadonlyMap<string, Waiting>, ids: ReadonlySet<string>): Finding[] =>
  [...waiting]
    .filter(([id, { open: isOpen }]) => isOpen && !ids.has(id))
    .map(([id, { place, settled }]) =>
      (settled ? violation : open)(place, `the log has ${id} open, and Temporal no workflow for it`),
    );

const orphaned = (
  waiting: ReadonlyMap<string, Waiting>,
  workflows: readonly OpenWorkflow[],
  since: Date,
): Finding[] =>
  workflows
    .filter(({ id }) => !waiting.get(id)?.open && !waiting.get(id)?.settled)
    .map(({ id, startedAt }) => {
      const late = !waiting.has(id) && startedAt < since;
      return (late ? violation : open)(nowhere(''), `workflow ${id} is open, and nothing in the log is`);
    });

const compare = async ({ pool, temporal, taskQueue, reconcileMs = RECONCILE_MS }: Compared) => {
  // The log first: what it opens meanwhile is in Temporal without being in it, and is asked for again.
  const waiting = await waitingInTheLog(pool, reconcileMs);
  const since = new Date((await nowOf(pool)).getTime() - reconcileMs);
  const workflows = await openWorkflows(temporal, taskQueue);
  const ids = new Set(workflows.map(({ id }) => id));
  const stuck = workflows
    .filter(({ attempt }) => attempt >= STUCK_ATTEMPTS)
    .map(({ id, attempt }) =>
      violation(nowhere(''), `workflow ${id} is stuck: its task has been tried ${attempt} times`),
    );
  return {
    checked: workflows.length,
    findings: [...stuck, ...missing(waiting, ids), ...orphaned(waiting, workflows, since)],
  };
};

export interface Compared {
  readonly pool: pg.Pool;
  readonly temporal: TemporalLink;
  /** Default: all of the namespace. */
  readonly taskQueue?: string | undefined;
  /** How long what differs may be the reconciler's to bring right, in ms. */
  readonly reconcileMs?: number | undefined;
}

/**
 * Holds Temporal's open workflows against what is open in the log. What is missing there, or has not ended there yet,
 * counts as open for as long as the reconciler may take, and is broken then.
 */
export const compareWorkflows = (
  compared: Compared,
  settled: Settled,
): Promise<{ readonly findings: readonly Finding[]; readonly checked: number }> =>
  settled(
    () => compare(compared),
    ({ findings }) => findings.length === 0,
  );
