import { causedError, textCause } from '@antiphon/contracts/causes';
import { Controller, Inject } from '@nestjs/common';
import { IDS } from '@antiphon/service-host';
import { FileAccess } from '@antiphon/conversation-features';
import { PlanRuns } from './plan-runs.js';
import { PlanStore } from './plan-store.js';
import { getPlan, runPlan, stopPlan, takePlanFacts } from '@antiphon/contracts/agent';
import type { PlanEvidence, PlanView } from '@antiphon/contracts/agent';
import { planStatus, toStepText } from '@antiphon/orchestration-domain';
import type { OpenTurn } from '@antiphon/conversation-domain';
import type { PastReads } from '@antiphon/event-store';
import { conflict, invalid, notFound, rejected } from '@antiphon/kernel';
import type { Ids } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';
import { requireRights, AgentDirectory, PAST_READS } from '@antiphon/agents-features';
import type { NativeCall } from '@antiphon/conversation-features';
import type { PlanAt } from './plan-store.js';

type PlanReply = { readonly plan: PlanView };

/** Tool by which an agent completes a step. */
const PLAN_STEP = 'plan_step';

const toView = ({ state, file, isInvalid }: Omit<PlanAt, 'calls'>): PlanView => {
  const status = planStatus(state);
  const { created, steps, conflicts, conflicted, run } = state;
  return {
    planId: created?.planId ?? '',
    path: created?.path ?? '',
    status: isInvalid || status === 'missing' ? 'invalid' : status,
    digest: file?.digest ?? null,
    steps: steps.map(({ stepId, text, body, status: own, evidence, note, code }) => {
      return { stepId, text, body, status: own, evidence, note, code };
    }),
    conflicts: [...conflicts],
    conflictedAt: conflicted?.at ?? null,
    run: run && {
      ...{ runId: run.runId, agentId: run.agentId, turns: run.turns },
      ...{ maxTurns: run.maxTurns, ended: run.ended },
    },
  };
};

/** Returns a plan as the result of a tool. */
const toText = ({ path, status, steps, conflicts }: PlanView): string => {
  const lines = steps.map(({ stepId, text, status: own }) => {
    const suffix = own === 'done' || own === 'open' ? '' : ` (${own})`;
    return `- [${own === 'done' ? 'x' : ' '}] ${stepId}: ${text}${suffix}`;
  });
  const shown = conflicts.map(
    ({ kind, stepId }) => `conflict: ${kind}${stepId === null ? '' : ` of ${stepId}`}`,
  );
  return [`${path}: ${status}`, ...lines, ...shown].join('\n');
};

interface StepReport {
  readonly path: string;
  readonly step: string;
  readonly status: 'done' | 'failed';
  readonly evidence?: { readonly tool: string } | { readonly none: string } | undefined;
  readonly note?: string | undefined;
}

/** Returns the newest successful call of a tool in the open turn. */
const callOf = ({ steps }: OpenTurn, tool: string) =>
  steps
    .flatMap(({ calls }) => calls)
    .findLast(({ name, status, isError }) => name === tool && status === 'completed' && !isError);

/** Handles the requests of clients and agents for plans. */
@Controller()
export class Plans {
  constructor(
    @Inject(PlanStore) private readonly plans: PlanStore,
    @Inject(PlanRuns) private readonly planRuns: PlanRuns,
    @Inject(AgentDirectory) private readonly directory: AgentDirectory,
    @Inject(FileAccess) private readonly access: FileAccess,
    @Inject(PAST_READS) private readonly past: PastReads,
    @Inject(IDS) private readonly ids: Ids,
  ) {}

  @HandleRequest(getPlan)
  async get({
    at,
    takesEdits,
    ...ref
  }: z.output<typeof getPlan.request>): Promise<z.output<typeof getPlan.reply>> {
    const { plans, past } = this;
    if (at === undefined) return { plan: toView(await (takesEdits ? plans.read(ref) : plans.preview(ref))) };
    // A read of the past changes nothing: an edit of the file stays for the next live read.
    return past.readAt(at, async (upTo) => ({ plan: toView(await plans.readUpTo(ref, upTo)) }));
  }

  /** Starts a run of the plan's open steps by an agent that has the tool for it. */
  @HandleRequest(runPlan)
  async run({
    agent: agentId,
    maxTurns,
    actor,
    ...ref
  }: z.output<typeof runPlan.request>): Promise<PlanReply> {
    const { directory, plans, ids, access } = this;
    await requireRights(directory, ref.workspace, actor, agentId);
    const agent = await directory.load(ref.workspace, agentId);
    if (!agent || agent.status === 'terminated')
      throw causedError(notFound, 'AGENT.NOT_FOUND', { kind: 'agent_not_living', agentId });
    if (!agent.tools.includes(PLAN_STEP))
      throw causedError(rejected, 'PLAN.NO_TOOL', { kind: 'plan_without_tool', agentId });
    // Each completed step changes the file.
    await access.allow({ workspace: ref.workspace, agentId }, 'write', ref.path);
    const data = { runId: ids.next(), maxTurns };
    const at = await plans.change(ref, { actor: actor.caller, agentId }, ({ isInvalid }) => {
      if (isInvalid) throw causedError(invalid, 'PLAN.NO_STEPS', { kind: 'plan_without_steps' });
      return [{ type: 'StartPlanRun', data }];
    });
    this.planRuns.wake();
    return { plan: toView(at) };
  }

  @HandleRequest(stopPlan)
  async stop({ actor, ...ref }: z.output<typeof stopPlan.request>): Promise<PlanReply> {
    const { plans, directory } = this;
    const { run } = (await plans.peek(ref)).state;
    await requireRights(directory, ref.workspace, actor, run?.agentId ?? actor.agentId);
    const by = { actor: actor.caller, agentId: run?.agentId ?? null };
    const at = await plans.change(ref, by, () => [{ type: 'StopPlanRun', data: {} }]);
    this.planRuns.wake();
    return { plan: toView(at) };
  }

  /** Writes the facts over an edit of the file. An agent needs the right to write that file. */
  @HandleRequest(takePlanFacts)
  async takeFacts({ actor, digest, ...ref }: z.output<typeof takePlanFacts.request>): Promise<PlanReply> {
    const { plans, directory, access } = this;
    const { run } = (await plans.peek(ref)).state;
    const agentId = run?.agentId ?? actor.agentId;
    await requireRights(directory, ref.workspace, actor, agentId);
    if (actor.agentId !== null)
      await access.allow({ workspace: ref.workspace, agentId: actor.agentId }, 'write', ref.path);
    return { plan: toView(await plans.takeFacts(ref, { actor: actor.caller, agentId }, digest)) };
  }

  /** Makes a plan for an agent. A repeated call returns the plan that the first one made. */
  async make(
    call: NativeCall,
    input: { readonly path: string; readonly title: string; readonly steps: readonly string[] },
  ): Promise<string> {
    const { workspace } = call;
    const { path } = input;
    await this.requireWritable(call, path);
    const boxes = input.steps.map((text) => `- [ ] ${toStepText(text)}\n`);
    const file = `# ${toStepText(input.title)}\n\n${boxes.join('')}`;
    const by = authorOf(call);
    const at = await this.plans.change({ workspace, path }, by, (before) => {
      const { created, rendered } = before.state;
      const place = {
        planId: this.plans.idOf({ workspace, path }),
        treeId: this.plans.treeOf(workspace),
      };
      const create = { type: 'CreatePlan', data: { ...place, path, file, kind: 'agent' } } as const;
      if (!created) return [create];
      if (before.calls.has(call.callId)) return [];
      // The file of the plan was removed: a new plan takes its place.
      if (before.file || !rendered) throw causedError(conflict, 'PLAN.EXISTS', { kind: 'plan_exists', path });
      const base = rendered.document;
      return [{ type: 'MergePlanEdit', data: { file, digest: rendered.digest, base, kind: 'agent' } }];
    });
    return toText(toView(at));
  }

  /** Records the end of a step for an agent. A completion needs evidence. */
  async report(call: NativeCall, input: StepReport): Promise<string> {
    const { workspace, turn } = call;
    const { path, step: stepId, status, note = null } = input;
    await this.requireWritable(call, path);
    const by = authorOf(call);
    const command =
      status === 'failed'
        ? ({
            type: 'FailPlanStep',
            data: {
              stepId,
              code: 'PLAN.STEP_FAILED',
              cause: note === null ? { kind: 'attempt_failed' } : textCause(note),
            },
          } as const)
        : ({
            type: 'CompletePlanStep',
            data: { stepId, evidence: evidenceOf(call, turn, input), note },
          } as const);
    const at = await this.plans.change({ workspace, path }, by, () => [command]);
    this.planRuns.wake();
    return toText(toView(at));
  }

  /** Throws `PLAN.FORKED_SESSION` and `FILE.NOT_ALLOWED` unless the call may change this plan. */
  private async requireWritable(call: NativeCall, path: string): Promise<void> {
    const { access, plans } = this;
    if ((await access.treeOf(call)) !== plans.treeOf(call.workspace))
      throw causedError(rejected, 'PLAN.FORKED_SESSION', { kind: 'plan_of_fork' });
    await access.allow(call, 'write', path);
  }
}

const authorOf = ({ agentId, sessionId, turn: { turnId }, callId }: NativeCall) => ({
  ...{ actor: `agent/${agentId}`, agentId },
  cause: { sessionId, turnId, callId },
});

/** Returns the evidence that an agent cites. Throws `PLAN.NO_EVIDENCE`: a claim alone is none. */
const evidenceOf = ({ sessionId }: NativeCall, turn: OpenTurn, { evidence }: StepReport): PlanEvidence => {
  if (evidence && 'none' in evidence) return { kind: 'none', reason: evidence.none };
  const found = evidence && callOf(turn, evidence.tool);
  if (!evidence || !found) throw causedError(rejected, 'PLAN.NO_EVIDENCE', { kind: 'plan_without_evidence' });
  const { callId } = found;
  return { kind: 'tool', tool: evidence.tool, callId, sessionId, turnId: turn.turnId };
};
