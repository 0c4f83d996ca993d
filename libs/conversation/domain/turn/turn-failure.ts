import type { TurnFailureCause } from '@antiphon/contracts/agent';
import type { FailTurn } from './step.js';

type CauseOf<Kind extends TurnFailureCause['kind']> = Extract<TurnFailureCause, { kind: Kind }>;
type Texts = { readonly [Kind in TurnFailureCause['kind']]: (cause: CauseOf<Kind>) => string };

/** Error code of a turn by the kind of its cause (docs/errors.md). */
const CODES = {
  provider_paused: 'PROVIDER.PAUSED',
  max_iterations: 'TURN.MAX_ITERATIONS',
  agent_ended: 'AGENT.TERMINATED',
  agent_unknown: 'AGENT.NOT_FOUND',
} as const satisfies Record<TurnFailureCause['kind'], string>;

/** Texts for people. They may be reworded: no rule and no replay reads them. */
const TEXTS: Texts = {
  provider_paused: ({ provider, until, lastError }) => {
    const because = lastError === null ? '' : `; it last failed with: ${lastError}`;
    return `provider ${provider} is paused until ${until} after failures in a row${because}`;
  },
  max_iterations: ({ limit }) =>
    `the agent made ${limit} model calls without coming to an end (max_iterations)`,
  agent_ended: () => 'the agent of this turn has ended',
  agent_unknown: ({ agentId }) => `the agent "${agentId}" is not configured any more`,
};

const textOf = <Kind extends TurnFailureCause['kind']>(cause: CauseOf<Kind>): string =>
  (TEXTS[cause.kind] as (cause: CauseOf<Kind>) => string)(cause);

/** Returns the step that fails a turn for a cause of this session's own rules. */
export const failFor = (turnId: string, cause: TurnFailureCause): FailTurn => ({
  ...{ kind: 'fail', turnId, code: CODES[cause.kind], message: textOf(cause), cause },
});
