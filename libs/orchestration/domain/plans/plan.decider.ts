import { causedError } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import type { PlanEvent, PlanEvidence } from '@antiphon/contracts/agent';
import { conflict, invalid, notFound, rejected } from '@antiphon/kernel';
import type { Decider } from '@antiphon/kernel';
import { invalidPlan, mergePlan } from './merge-plan.js';
import type { PlanAuthor, PlanEdit } from './merge-plan.js';
import { PLAN_LIMITS, parsePlan } from './plan-file.js';
import { evolvePlan, initialPlan, nextPlanStep } from './plan-fold.js';
import type { PlanFold, PlanRunEnd, PlanStep } from './plan-fold.js';

const schemaVersion = 1;

/** `now`: ISO 8601, UTC. */
interface Command<T extends string, Data> {
  readonly type: T;
  readonly data: Data;
  readonly by: Pick<PlanAuthor, 'actor' | 'agentId'>;
  readonly now: string;
}
interface PlanPlace {
  readonly planId: string;
  readonly treeId: string;
  readonly path: string;
}

/** Creates the plan of a file. `kind` is the author of the file: only a person's ticks count. */
export type CreatePlan = Command<
  'CreatePlan',
  PlanPlace & { readonly file: string; readonly kind: PlanAuthor['kind'] }
>;
export type MergePlanEdit = Command<
  'MergePlanEdit',
  Omit<PlanEdit, 'author' | 'now'> & { readonly kind: PlanAuthor['kind'] }
>;
export type StartPlanStep = Command<
  'StartPlanStep',
  {
    readonly stepId: string;
    readonly runId: string | null;
    readonly sessionId: string | null;
    readonly turnId: string | null;
  }
>;
export type CompletePlanStep = Command<
  'CompletePlanStep',
  { readonly stepId: string; readonly evidence: PlanEvidence; readonly note: string | null }
>;
export type FailPlanStep = Command<
  'FailPlanStep',
  { readonly stepId: string; readonly code: string; readonly cause: Cause }
>;
export type StartPlanRun = Command<'StartPlanRun', { readonly runId: string; readonly maxTurns: number }>;
export type StopPlanRun = Command<'StopPlanRun', Record<never, never>>;
export type EndPlanRun = Command<
  'EndPlanRun',
  { readonly runId: string; readonly reason: PlanRunEnd; readonly cause: Cause | null }
>;
/** The file shows the plan: `digest` is that of its content. */
/** Settles the conflicts of the last edit by the facts. */
export type TakePlanFacts = Command<'TakePlanFacts', Record<never, never>>;
export type RenderPlanFile = Command<'RenderPlanFile', { readonly digest: string }>;

export type PlanCommand =
  | CreatePlan
  | MergePlanEdit
  | StartPlanStep
  | CompletePlanStep
  | FailPlanStep
  | StartPlanRun
  | StopPlanRun
  | EndPlanRun
  | TakePlanFacts
  | RenderPlanFile;

const NO_STEPS = { kind: 'plan_without_steps' } as const;
const TOO_LARGE = { kind: 'plan_too_large', steps: PLAN_LIMITS.steps, chars: PLAN_LIMITS.text } as const;

const changeOf = ({ created, agentId }: PlanFold, { by, now }: PlanCommand) => ({
  ...{ planId: created?.planId ?? '', path: created?.path ?? '' },
  ...{ actor: by.actor, agentId: by.agentId ?? agentId, at: now },
});

const createPlan = (command: CreatePlan, state: PlanFold): PlanEvent[] => {
  if (state.created)
    throw causedError(conflict, 'PLAN.EXISTS', { kind: 'plan_exists', path: state.created.path });
  const { file, kind, ...place } = command.data;
  const parsed = parsePlan(file);
  const reason = invalidPlan(parsed);
  if (reason)
    throw causedError(invalid, `PLAN.${reason.toUpperCase()}`, reason === 'no_steps' ? NO_STEPS : TOO_LARGE);
  const change = { ...changeOf(state, command), planId: place.planId, path: place.path };
  const steps = parsed.steps.map(({ text, body }, at) => ({ stepId: `s${at + 1}`, text, body }));
  const { head, eol } = parsed;
  const created = { ...change, treeId: place.treeId, head, eol, steps };
  const ticked = steps.filter((_, at) => kind === 'person' && parsed.steps[at]?.isDone);
  return [
    { type: 'PlanCreated', schemaVersion, data: created },
    ...ticked.map(({ stepId }): PlanEvent => {
      const evidence = { kind: 'person', caller: change.actor } as const;
      return { type: 'PlanStepCompleted', schemaVersion, data: { ...change, stepId, evidence, note: null } };
    }),
  ];
};

const requireStep = (state: PlanFold, stepId: string): PlanStep => {
  const step = state.steps.find((other) => other.stepId === stepId);
  if (step) return step;
  const steps = state.steps.map((other) => other.stepId).join(', ');
  throw causedError(notFound, 'PLAN.STEP_NOT_FOUND', { kind: 'plan_step_missing', stepId, steps });
};

const startStep = (command: StartPlanStep, state: PlanFold): PlanEvent[] => {
  const { stepId, turnId } = command.data;
  const step = requireStep(state, stepId);
  if (step.status === 'done') return [];
  if (step.status === 'started' && step.turnId === turnId) return [];
  const data = { ...changeOf(state, command), ...command.data };
  return [{ type: 'PlanStepStarted', schemaVersion, data }];
};

const completeStep = (command: CompletePlanStep, state: PlanFold): PlanEvent[] => {
  if (requireStep(state, command.data.stepId).status === 'done') return [];
  const data = { ...changeOf(state, command), ...command.data };
  return [{ type: 'PlanStepCompleted', schemaVersion, data }];
};

const failStep = (command: FailPlanStep, state: PlanFold): PlanEvent[] => {
  const { status, code } = requireStep(state, command.data.stepId);
  if (status === 'done')
    throw causedError(rejected, 'PLAN.STEP_DONE', { kind: 'plan_step_done', stepId: command.data.stepId });
  if (status === 'failed' && code === command.data.code) return [];
  const data = { ...changeOf(state, command), ...command.data };
  return [{ type: 'PlanStepFailed', schemaVersion: 2, data }];
};

/** Starts a run. Steps that failed or were interrupted are to be done again. */
const startRun = (command: StartPlanRun, state: PlanFold): PlanEvent[] => {
  const { run } = state;
  if (run?.runId === command.data.runId) return [];
  if (run && !run.ended) throw causedError(conflict, 'PLAN.RUNNING', { kind: 'plan_running' });
  if (!nextPlanStep(state)) throw causedError(rejected, 'PLAN.DONE', { kind: 'plan_done' });
  const change = changeOf(state, command);
  const again = state.steps.filter(({ status }) => status === 'failed' || status === 'started');
  return [
    { type: 'PlanRunStarted', schemaVersion, data: { ...change, ...command.data } },
    ...again.map(({ stepId }): PlanEvent => {
      return { type: 'PlanStepReopened', schemaVersion, data: { ...change, stepId } };
    }),
  ];
};

const stopRun = (command: StopPlanRun, state: PlanFold): PlanEvent[] => {
  const { run } = state;
  if (!run || run.ended || run.isStopRequested) return [];
  const data = { ...changeOf(state, command), runId: run.runId };
  return [{ type: 'PlanRunStopRequested', schemaVersion, data }];
};

const endRun = (command: EndPlanRun, state: PlanFold): PlanEvent[] => {
  const { run } = state;
  if (!run || run.ended || run.runId !== command.data.runId) return [];
  return [{ type: 'PlanRunEnded', schemaVersion: 2, data: { ...changeOf(state, command), ...command.data } }];
};

const mergeEdit = ({ data: { kind, ...edit }, by, now }: MergePlanEdit, state: PlanFold): PlanEvent[] => {
  const author = { kind, actor: by.actor, agentId: by.agentId ?? state.agentId };
  return [...mergePlan(state, { ...edit, author, now }).events];
};

const takeFacts = (command: TakePlanFacts, state: PlanFold): PlanEvent[] =>
  state.conflicts.length === 0
    ? []
    : [{ type: 'PlanConflictsSettled', schemaVersion, data: changeOf(state, command) }];

const render = (command: RenderPlanFile, state: PlanFold): PlanEvent[] => {
  const done = state.steps.filter(({ status }) => status === 'done').length;
  const counts = { done, steps: state.steps.length };
  const data = { ...changeOf(state, command), ...command.data, ...counts };
  return [{ type: 'PlanFileRendered', schemaVersion, data }];
};

const decide = (command: PlanCommand, state: PlanFold): PlanEvent[] => {
  if (command.type === 'CreatePlan') return createPlan(command, state);
  if (!state.created) throw causedError(notFound, 'PLAN.NOT_FOUND', { kind: 'plan_missing', path: '' });
  switch (command.type) {
    case 'MergePlanEdit':
      return mergeEdit(command, state);
    case 'StartPlanStep':
      return startStep(command, state);
    case 'CompletePlanStep':
      return completeStep(command, state);
    case 'FailPlanStep':
      return failStep(command, state);
    case 'StartPlanRun':
      return startRun(command, state);
    case 'StopPlanRun':
      return stopRun(command, state);
    case 'EndPlanRun':
      return endRun(command, state);
    case 'TakePlanFacts':
      return takeFacts(command, state);
    case 'RenderPlanFile':
      return render(command, state);
  }
};

export const planDecider: Decider<PlanFold, PlanCommand, PlanEvent> = {
  initialState: initialPlan,
  decide,
  evolve: evolvePlan,
};
