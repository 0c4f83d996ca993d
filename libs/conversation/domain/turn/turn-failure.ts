import type { Cause } from '@antiphon/contracts/causes';
import type { FailTurn } from './step.js';

/** Error code of a turn by the kind of its cause (docs/errors.md). */
const CODES = {
  provider_paused: 'PROVIDER.PAUSED',
  max_iterations: 'TURN.MAX_ITERATIONS',
  agent_ended: 'AGENT.TERMINATED',
  agent_unknown: 'AGENT.NOT_FOUND',
} as const satisfies Partial<Record<Cause['kind'], string>>;

/** Cause of a failure that a rule of the session decides. */
export type TurnFailureCause = Extract<Cause, { kind: keyof typeof CODES }>;

/** Returns the step that fails a turn for a cause of this session's own rules. */
export const failFor = (turnId: string, cause: TurnFailureCause): FailTurn => ({
  ...{ kind: 'fail', turnId, code: CODES[cause.kind], cause },
});
