import { Controller, Inject } from '@nestjs/common';
import { listPlans, PLAN_SUFFIX } from '@antiphon/contracts/agent';
import type { PlanItem } from '@antiphon/contracts/agent';
import { encodeCursor } from '@antiphon/contracts/log';
import { AGENT_STORE, PAST_READS } from '@antiphon/agents-features';
import { positionOfCursor } from '@antiphon/event-store';
import type { EventStore, PastReads } from '@antiphon/event-store';
import { comparePaths } from '@antiphon/files-domain';
import type { FileEntry } from '@antiphon/files-domain';
import { FileTrees, findTreeVersion } from '@antiphon/files-features';
import { planStatus } from '@antiphon/orchestration-domain';
import { isAppError } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';
import { PlanStore } from './plan-store.js';
import type { PlanAt } from './plan-store.js';

/** A file of the tree, as a list of plans needs it. */
type PlanFile = Pick<FileEntry, 'path' | 'changedAt' | 'changedBy'>;
type Reply = z.output<typeof listPlans.reply>;

const itemOf = (file: PlanFile, plan: Omit<PlanAt, 'calls'> | null): PlanItem => {
  const { path, changedAt, changedBy } = file;
  const origin = { path, changedAt, changedBy };
  if (!plan?.state.created)
    return {
      ...origin,
      ...{ planId: null, status: 'invalid', done: 0, failed: 0, steps: 0, conflicts: 0, agentId: null },
    };
  const { created, steps, conflicts, run } = plan.state;
  const status = planStatus(plan.state);
  const countOf = (wanted: string): number => steps.filter(({ status: own }) => own === wanted).length;
  return {
    ...origin,
    planId: created?.planId ?? null,
    status: plan.isInvalid || status === 'missing' ? 'invalid' : status,
    ...{ done: countOf('done'), failed: countOf('failed'), steps: steps.length, conflicts: conflicts.length },
    agentId: run && run.ended === null ? run.agentId : null,
  };
};

/** Lists the plans of a workspace: the files of its tree with the ending of plans. */
@Controller()
export class ListPlans {
  constructor(
    @Inject(PlanStore) private readonly plans: PlanStore,
    @Inject(PAST_READS) private readonly past: PastReads,
    @Inject(FileTrees) private readonly trees: FileTrees,
    @Inject(AGENT_STORE) private readonly store: EventStore,
  ) {}

  @HandleRequest(listPlans)
  list(request: z.output<typeof listPlans.request>): Promise<Reply> {
    const { at } = request;
    return at === undefined ? this.page(request) : this.past.readAt(at, (upTo) => this.page(request, upTo));
  }

  private async page(
    { workspace, limit, cursor }: z.output<typeof listPlans.request>,
    upTo?: number,
  ): Promise<{ plans: PlanItem[]; total: number; nextCursor: string | null }> {
    const files = await this.files(workspace, upTo);
    const from = positionOfCursor(cursor) ?? 0;
    const shown = files.slice(from, from + limit);
    const plans = await Promise.all(shown.map((file) => this.itemOf(workspace, file, upTo)));
    const next = from + shown.length;
    return { plans, total: files.length, nextCursor: next < files.length ? encodeCursor(next) : null };
  }

  /** Returns the files of plans by path, now or as of a position of the log. */
  private async files(workspace: string, upTo?: number): Promise<PlanFile[]> {
    const reads = { trees: this.trees, store: this.store };
    const treeId = this.plans.treeOf(workspace);
    const version = upTo === undefined ? undefined : await findTreeVersion(reads, workspace, treeId, upTo);
    const { files } = await this.trees.read(workspace, treeId, version);
    return [...files.values()]
      .filter(({ path }) => path.endsWith(PLAN_SUFFIX))
      .sort((a, b) => comparePaths(a.path, b.path));
  }

  /** Reads one plan and records nothing. A file that is no plan yet is listed as invalid. */
  private async itemOf(workspace: string, file: PlanFile, upTo?: number): Promise<PlanItem> {
    const ref = { workspace, path: file.path };
    try {
      const plan = upTo === undefined ? this.plans.preview(ref) : this.plans.readUpTo(ref, upTo);
      return itemOf(file, await plan);
    } catch (error) {
      if (isAppError(error) && ['not_found', 'invalid', 'rejected'].includes(error.kind))
        return itemOf(file, null);
      throw error;
    }
  }
}
