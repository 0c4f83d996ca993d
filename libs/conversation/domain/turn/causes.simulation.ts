import type { Cause } from '@antiphon/contracts/causes';
import type { ToolOutcome } from '../session/session-command.js';
import type { TurnToolCall } from '../session/session-state.js';
import type { Choose } from './driver.simulation.js';

/** Causes of failed calls of models. */
const MODEL_CAUSES: readonly Cause[] = [
  { kind: 'text', text: 'it failed' },
  { kind: 'provider_answer_broken', problem: 'incomplete', detail: 2 },
  { kind: 'provider_unreachable', problem: 'none', address: 'host:443', proxy: '', code: 'ECONNREFUSED' },
  {
    ...{ kind: 'provider_refused', status: 401, form: 'text', said: 'no', advice: 'refused_key' },
    ...{ model: 'm', endpoint: 'https://host/v1/chat/completions' },
  },
];
/** Causes of refused calls of tools, by the code of each. */
const TOOL_CAUSES: readonly (readonly [code: string, cause: Cause])[] = [
  ['FILE.NOT_FOUND', { kind: 'file_missing', path: 'a.txt' }],
  [
    'FILE.NO_MATCH',
    {
      ...{ kind: 'edit_not_made', proposal: 'b' },
      why: { kind: 'edit_no_match', near: { kind: 'edit_near_equal', differs: 'quotes', lines: '3' } },
    },
  ],
  ['PLAN.NO_EVIDENCE', { kind: 'plan_without_evidence' }],
  ['TOOL.INVALID_INPUT', { kind: 'tool_input_invalid', issues: 'path: too long' }],
];

const oneOf = <T>(items: readonly T[], choose: Choose): T => items[choose(items.length)] as T;

/** Returns the cause of a failed call of a model. */
export const modelCause = (choose: Choose): Cause => oneOf(MODEL_CAUSES, choose);

/** Returns the outcome of a call that its tool refused. */
export const refusedOutcome = (turnId: string, { callId }: TurnToolCall, choose: Choose): ToolOutcome => {
  const [code, cause] = oneOf(TOOL_CAUSES, choose);
  return { type: 'ToolCallFailed', data: { turnId, callId, code, cause } };
};
