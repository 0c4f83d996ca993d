import { textOf } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import type { PlanConflict, PlanEvent, PlanEvidence, PlanStepText } from '@antiphon/contracts/agent';
import type { LineEnding, PlanDocument, PlanStepStatus } from './plan-file.js';

/** A step of a plan after its events. */
export interface PlanStep extends PlanStepText {
  readonly status: PlanStepStatus;
  /** Turn that does it or did it; null for none. */
  readonly sessionId: string | null;
  readonly turnId: string | null;
  readonly evidence: PlanEvidence | null;
  /** Note of the completion, or message of the failure. */
  readonly note: string | null;
  readonly code: string | null;
  /** Cause of the last failure. */
  readonly cause?: Cause;
  /** Number of times that the step was started. The next turn of the step has the next number. */
  readonly starts: number;
}

export type PlanRunEnd = Extract<PlanEvent, { type: 'PlanRunEnded' }>['data']['reason'];

/** The last run of a plan. */
export interface PlanRun {
  readonly runId: string;
  readonly agentId: string;
  readonly maxTurns: number;
  readonly turns: number;
  readonly isStopRequested: boolean;
  readonly ended: { readonly reason: PlanRunEnd; readonly message: string | null } | null;
}

/** State of a plan after its events. */
export interface PlanFold {
  readonly created: { readonly planId: string; readonly treeId: string; readonly path: string } | null;
  readonly eol: LineEnding;
  readonly head: string;
  readonly steps: readonly PlanStep[];
  /** Number of steps that were ever added: their ids are never used again. */
  readonly added: number;
  /** The plan as its file last showed it: base of the next edit. */
  readonly rendered: { readonly digest: string; readonly document: PlanDocument } | null;
  /** The last edit that contradicts the facts. */
  readonly conflicted: { readonly digest: string; readonly at: string } | null;
  /** Conflicts of that edit. */
  readonly conflicts: readonly PlanConflict[];
  readonly run: PlanRun | null;
  /** Agent that changed the plan last; null if none did. */
  readonly agentId: string | null;
}

export const initialPlan = (): PlanFold => ({
  created: null,
  eol: 'lf',
  head: '',
  steps: [],
  added: 0,
  rendered: null,
  conflicted: null,
  conflicts: [],
  run: null,
  agentId: null,
});

const newStep = ({ stepId, text, body }: PlanStepText): PlanStep => ({
  ...{ stepId, text, body, status: 'open', starts: 0 },
  ...{ sessionId: null, turnId: null, evidence: null, note: null, code: null },
});

/** Returns the plan in the form of its file. */
export const documentOf = ({ eol, head, steps }: PlanFold): PlanDocument => ({
  ...{ eol, head },
  steps: steps.map(({ stepId, text, body, status }) => ({ stepId, text, body, status })),
});

const changeStep = (state: PlanFold, stepId: string, change: Partial<PlanStep>): PlanFold => ({
  ...state,
  steps: state.steps.map((step) => (step.stepId === stepId ? { ...step, ...change } : step)),
});

const numberOf = (stepId: string): number => Number(stepId.slice(1));

const addStep = (state: PlanFold, step: PlanStepText, after: string | null): PlanFold => {
  // A step that is gone by now counts as the last one.
  const found = state.steps.findIndex(({ stepId }) => stepId === after);
  const at = after === null ? 0 : found < 0 ? state.steps.length : found + 1;
  const added = Math.max(state.added, numberOf(step.stepId));
  return { ...state, added, steps: state.steps.toSpliced(at, 0, newStep(step)) };
};

/** Steps that the order does not name keep their places at the end. */
const reorder = (state: PlanFold, order: readonly string[]): PlanFold => {
  const rank = new Map(order.map((stepId, index) => [stepId, index]));
  const rankOf = ({ stepId }: PlanStep): number => rank.get(stepId) ?? order.length;
  return { ...state, steps: [...state.steps].sort((a, b) => rankOf(a) - rankOf(b)) };
};

const changeRun = (state: PlanFold, runId: string | null, change: (run: PlanRun) => PlanRun): PlanFold =>
  state.run?.runId === runId ? { ...state, run: change(state.run) } : state;

const startStep = (
  state: PlanFold,
  { stepId, sessionId, turnId, runId }: Extract<PlanEvent, { type: 'PlanStepStarted' }>['data'],
): PlanFold => {
  const starts = (state.steps.find((step) => step.stepId === stepId)?.starts ?? 0) + 1;
  const change = { status: 'started', sessionId, turnId, starts, note: null, code: null } as const;
  return changeRun(changeStep(state, stepId, change), runId, (run) => ({ ...run, turns: run.turns + 1 }));
};

const create = (state: PlanFold, data: Extract<PlanEvent, { type: 'PlanCreated' }>['data']): PlanFold => {
  const { planId, treeId, path, head, eol, steps } = data;
  const added = Math.max(...steps.map(({ stepId }) => numberOf(stepId)));
  return { ...state, created: { planId, treeId, path }, head, eol, steps: steps.map(newStep), added };
};

type Folds = {
  [T in PlanEvent['type']]: (state: PlanFold, data: Extract<PlanEvent, { type: T }>['data']) => PlanFold;
};

const FOLDS: Folds = {
  PlanCreated: create,
  PlanStepAdded: (state, data) => addStep(state, data, data.after),
  PlanStepRemoved: (state, data) => ({
    ...state,
    steps: state.steps.filter(({ stepId }) => stepId !== data.stepId),
  }),
  PlanStepReworded: (state, { stepId, text, body }) => changeStep(state, stepId, { text, body }),
  PlanStepsReordered: (state, { order }) => reorder(state, order),
  PlanHeadChanged: (state, { head, eol }) => ({ ...state, head, eol }),
  PlanStepStarted: startStep,
  PlanStepCompleted: (state, { stepId, evidence, note }) =>
    changeStep(state, stepId, { status: 'done', evidence, note, code: null }),
  PlanStepFailed: (state, { stepId, code, cause }) =>
    changeStep(state, stepId, { status: 'failed', code, note: textOf(cause), cause }),
  PlanStepReopened: (state, { stepId }) =>
    changeStep(state, stepId, {
      ...{ status: 'open', evidence: null, note: null, code: null, sessionId: null, turnId: null },
    }),
  PlanEditConflicted: (state, { digest, conflicts, at }) => ({
    ...state,
    conflicted: { digest, at },
    conflicts,
  }),
  PlanConflictsSettled: (state) => ({ ...state, conflicted: null, conflicts: [] }),
  PlanFileRendered: (state, { digest }) => ({ ...state, rendered: { digest, document: documentOf(state) } }),
  PlanRunStarted: (state, { runId, maxTurns, agentId }) => {
    const run = { runId, maxTurns, agentId: agentId ?? '', turns: 0, isStopRequested: false, ended: null };
    return { ...state, run };
  },
  PlanRunStopRequested: (state, { runId }) =>
    changeRun(state, runId, (run) => ({ ...run, isStopRequested: true })),
  PlanRunEnded: (state, { runId, reason, cause }) =>
    changeRun(state, runId, (run) => ({ ...run, ended: { reason, message: cause && textOf(cause) } })),
};

/** Folds the events of a plan. Never throws: recorded events are facts. */
export const evolvePlan = (state: PlanFold, event: PlanEvent): PlanFold => {
  const evolve = FOLDS[event.type] as (state: PlanFold, data: PlanEvent['data']) => PlanFold;
  return { ...evolve(state, event.data), agentId: event.data.agentId ?? state.agentId };
};

/** State of a plan as a whole. A plan without steps is invalid: neither done nor open. */
export type PlanStatus = 'missing' | 'invalid' | 'open' | 'running' | 'failed' | 'done';

export const planStatus = ({ created, steps, run }: PlanFold): PlanStatus => {
  if (!created) return 'missing';
  if (steps.length === 0) return 'invalid';
  if (steps.every(({ status }) => status === 'done')) return 'done';
  if (run && !run.ended) return 'running';
  return steps.some(({ status }) => status === 'failed') ? 'failed' : 'open';
};

/** Returns the first step that is not done; null if every step is. */
export const nextPlanStep = ({ steps }: PlanFold): PlanStep | null =>
  steps.find(({ status }) => status !== 'done') ?? null;
