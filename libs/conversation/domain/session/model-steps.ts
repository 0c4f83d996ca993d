import type { SessionEventOf } from '@antiphon/contracts/agent';
import type { FailedTry, TurnStep } from './session-state.js';

/** Returns the step that a completed model call makes, with the calls that it asks for. */
export const stepOf = ({
  text,
  provider,
  model,
  toolCalls,
  finishReason,
  ...state
}: SessionEventOf<'ModelCallCompleted'>['data']): TurnStep => ({
  text,
  provider,
  model,
  ...stateOf(state),
  ...(finishReason === 'length' || finishReason === 'content_filter' ? { cutBy: finishReason } : {}),
  calls: toolCalls.map((call) => ({
    ...call,
    status: 'asked',
    idempotent: false,
    idempotencyKey: '',
    claimed: false,
    tries: 0,
    approval: null,
    retry: null,
    timeoutMs: null,
    deferred: null,
    content: '',
    isError: false,
  })),
});

type State = Pick<
  SessionEventOf<'ModelCallCompleted'>['data'],
  'providerState' | 'keepsProviderState' | 'thought'
>;

const stateOf = ({ providerState, keepsProviderState, thought }: State): Partial<TurnStep> =>
  providerState
    ? { providerState, thought, ...(keepsProviderState ? { keepsState: keepsProviderState } : {}) }
    : {};

/** Returns the failed try that an aborted model call makes. */
export const tryOf = (data: SessionEventOf<'ModelCallAborted'>['data']): FailedTry => {
  const { provider, model, reason, cause, retryable, text, released, tries } = data;
  return {
    ...{ provider, model, reason, cause, retryable, text },
    ...(released ? { released } : {}),
    ...(tries === undefined ? {} : { tries }),
  };
};
