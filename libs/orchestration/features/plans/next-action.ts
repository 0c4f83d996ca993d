import type { Cause } from '@antiphon/contracts/causes';
import type { PlanEvent } from '@antiphon/contracts/agent';
import { nextPlanStep } from '@antiphon/orchestration-domain';
import type { PlanRun, PlanStep } from '@antiphon/orchestration-domain';
import type { PlanAt } from './plan-store.js';

/** Text of the turn that does a step. */
export const promptOf = (path: string, { stepId, text, body }: PlanStep): string =>
  [
    `Do step ${stepId} of the plan ${path}: ${text}`,
    ...(body.trim() === '' ? [] : [body.trimEnd()]),
    `Then call plan_step with the path "${path}" and the step "${stepId}": status "done" with the evidence, ` +
      'or status "failed" with a note. Only that call completes the step.',
  ].join('\n\n');

export type End = Extract<PlanEvent, { type: 'PlanRunEnded' }>['data']['reason'];

/** Next action of a run. */
export type Action =
  | { readonly kind: 'end'; readonly reason: End; readonly cause: Cause | null }
  | { readonly kind: 'start'; readonly step: PlanStep }
  | { readonly kind: 'await'; readonly step: PlanStep };

/** Decides on the next action from the facts alone. */
export const nextAction = ({ state, file, isInvalid }: PlanAt, run: PlanRun): Action => {
  const end = (reason: End, cause: Cause | null = null): Action => ({ kind: 'end', reason, cause });
  const started = state.steps.find(({ status }) => status === 'started');
  if (run.isStopRequested && !started) return end('stopped');
  if (!file && !started) return end('plan_removed', { kind: 'plan_file_removed' });
  if (started) return { kind: 'await', step: started };
  if (isInvalid) return end('stopped', { kind: 'plan_file_empty' });
  const failed = state.steps.find(({ status }) => status === 'failed');
  if (failed) {
    const why = failed.cause ?? ({ kind: 'attempt_failed' } as const);
    return end('step_failed', { kind: 'plan_step_failed', stepId: failed.stepId, why });
  }
  const next = nextPlanStep(state);
  if (!next) return end('completed');
  if (run.turns >= run.maxTurns) return end('turn_limit', { kind: 'plan_turn_limit', turns: run.turns });
  return { kind: 'start', step: next };
};
