import type pg from 'pg';
import { acrossWorkspaces, translateDatabaseError } from '@antiphon/database';
import { backoffDelay, isAppError } from '@antiphon/kernel';
import { isPermanentError } from '../runs/run-task.js';
import type { PlanRef } from './plan-store.js';

/** A start or an end of a run in the log. */
export interface PlanRunFact extends PlanRef {
  readonly position: number;
  readonly runId: string;
  readonly isEnd: boolean;
}

/** A run without an end. */
export interface OpenPlanRun extends PlanRef {
  readonly runId: string;
}

const PAGE = 1_000;
const FACTS_SQL = `select position, workspace, data ->> 'path' as path, data ->> 'runId' as run_id, type
  from events where type in ('PlanRunStarted', 'PlanRunEnded') and position > $1
  order by position limit ${PAGE}`;

/** Reads the next starts and ends after a position, over all workspaces. */
export const readPlanRunFacts = async (pool: pg.Pool, after: number): Promise<PlanRunFact[]> => {
  try {
    const { rows } = await acrossWorkspaces(pool).query<{
      position: string;
      workspace: string;
      path: string;
      run_id: string;
      type: string;
    }>({ name: 'agent_plan_run_facts', text: FACTS_SQL, values: [after] });
    return rows.map(({ position, workspace, path, run_id: runId, type }) => ({
      ...{ position: Number(position), workspace, path, runId, isEnd: type === 'PlanRunEnded' },
    }));
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

/**
 * Open runs of plans, as a fold of the log. The first read folds all starts and ends; each later
 * one only those that follow.
 */
export class OpenPlanRuns {
  private readonly open = new Map<string, OpenPlanRun>();
  private after = 0;
  private lastMark: number | null = null;

  /** `readMark` returns a number that changes with new events of plans. */
  constructor(
    private readonly readFacts: (after: number) => Promise<readonly PlanRunFact[]>,
    private readonly readMark: () => Promise<number | null> = () => Promise.resolve(null),
  ) {}

  async find(): Promise<OpenPlanRun[]> {
    const mark = await this.readMark();
    if (mark !== null && mark === this.lastMark) return [...this.open.values()];
    for (let isFull = true; isFull;) {
      const facts = await this.readFacts(this.after);
      for (const { position, runId, isEnd, workspace, path } of facts) {
        if (isEnd) this.open.delete(runId);
        else this.open.set(runId, { workspace, path, runId });
        this.after = position;
      }
      isFull = facts.length >= PAGE;
    }
    this.lastMark = mark;
    return [...this.open.values()];
  }
}

/** Failures in a row after which a run ends, unless a dependency is at fault. */
const MAX_FAILURES = 8;
const BACKOFF = { firstMs: 500, maxMs: 60_000 };

/** Failures of open runs: when to drive a run again, and when to end it. */
export class PlanRunFailures {
  private readonly failures = new Map<string, { readonly count: number; readonly retryAt: number }>();

  constructor(private readonly now: () => number) {}

  isWaiting(runId: string): boolean {
    return this.now() < (this.failures.get(runId)?.retryAt ?? 0);
  }

  clear(runId: string): void {
    this.failures.delete(runId);
  }

  /** Counts a failure. Returns true if the run is to end: a retry would fail again. */
  add(runId: string, error: unknown): boolean {
    const count = (this.failures.get(runId)?.count ?? 0) + 1;
    this.failures.set(runId, { count, retryAt: this.now() + backoffDelay(BACKOFF, count - 1) });
    const kind = isAppError(error) ? error.kind : 'bug';
    return isPermanentError(kind) || (kind !== 'transient' && count >= MAX_FAILURES);
  }
}
