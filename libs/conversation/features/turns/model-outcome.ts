import { textOf } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import type { ModelAnswer } from '@antiphon/providers-domain';
import type { OpenCall, SessionCommand } from '@antiphon/conversation-domain';
import { MAX_CALLS_PER_STEP, ModelFailure } from '@antiphon/providers-domain';
import { clipText, costMicroUsd, MAX_JSON_DEPTH, toStorable, toStorableJson } from '@antiphon/kernel';
import type { JsonValue } from '@antiphon/kernel';
import type { Streamed } from './delta-stream.js';
import { callIdOf, storableCause } from '@antiphon/agent-log';
import type { GrantedReservation } from './reserve-budget.js';

type RecordAnswer = Extract<SessionCommand, { type: 'RecordAnswer' }>;
type RecordFailure = Extract<SessionCommand, { type: 'RecordFailure' }>;

const MAX_MESSAGE_CHARS = 4_000;
const MAX_NAME_CHARS = 200;
/** Maximum size of all arguments of a step together, characters of JSON. An event holds 1 MiB. */
const MAX_INPUT_CHARS = 100_000;

const isTooDeep = (value: JsonValue): boolean => {
  let level: JsonValue[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_JSON_DEPTH) return true;
    level = level.flatMap((item) => (item !== null && typeof item === 'object' ? Object.values(item) : []));
  }
  return false;
};

const refuse = (why: Cause, answer: ModelAnswer): never => {
  throw new ModelFailure({
    reason: 'provider_protocol',
    message: textOf(why),
    why,
    dispatched: true,
    retryable: true,
    usage: answer.usage ?? undefined,
  });
};

/**
 * Refuses calls that the log cannot store or no sandbox can run. Depth is checked before size,
 * which serialises the arguments.
 */
const checkCalls = (answer: ModelAnswer): void => {
  const { toolCalls } = answer;
  if (toolCalls.length > MAX_CALLS_PER_STEP)
    refuse({ kind: 'too_many_tool_calls', calls: toolCalls.length }, answer);
  if (toolCalls.some(({ name }) => name.length > MAX_NAME_CHARS))
    refuse({ kind: 'tool_name_too_long' }, answer);
  if (toolCalls.some(({ input }) => isTooDeep(input))) refuse({ kind: 'tool_input_too_deep' }, answer);
  const size = toolCalls.reduce((sum, { input }) => sum + JSON.stringify(input).length, 0);
  if (size > MAX_INPUT_CHARS) refuse({ kind: 'tool_input_too_long' }, answer);
};

/**
 * Converts a response to the command that records it. Usage that the provider did not report is the
 * reserved bound, marked as estimated. Throws `ModelFailure`.
 */
export const toAnswer = (
  answer: ModelAnswer,
  streamed: Streamed & Pick<RecordAnswer['data'], 'firstTextAt'>,
  call: OpenCall,
  granted: GrantedReservation,
  sessionId: string,
  now: string,
): RecordAnswer => {
  checkCalls(answer);
  const usage = answer.usage
    ? { ...answer.usage, estimated: false }
    : { inputTokens: granted.inputBound, outputTokens: granted.maxOutputTokens, estimated: true };
  const { price } = granted;
  return {
    type: 'RecordAnswer',
    now,
    data: {
      attempt: call.attempt,
      ...streamed,
      toolCalls: answer.toolCalls.map(({ providerCallId, name, input, problem }, index) => ({
        callId: callIdOf(sessionId, call.attempt, index),
        providerCallId: toStorable(providerCallId).slice(0, MAX_NAME_CHARS).toWellFormed(),
        name: toStorable(name),
        input: toStorableJson(input) as RecordAnswer['data']['toolCalls'][number]['input'],
        ...(problem ? { problem } : {}),
      })),
      finishReason: answer.finishReason,
      usage,
      costMicroUsd: price && costMicroUsd(price, usage.inputTokens, usage.outputTokens),
    },
  };
};

const NOTHING_STREAMED: Streamed = { text: '', thought: '', frames: [] };

/** Converts a failed attempt to the command that records it, with the text that was streamed. */
export const toFailure = (
  attempt: number,
  failure: Pick<RecordFailure['data'], 'reason' | 'cause' | 'released' | 'dispatched' | 'retryable'> & {
    readonly refused?: boolean;
    readonly tries?: number;
    readonly usage?: ModelFailure['usage'];
  },
  now: string,
  streamed: Streamed = NOTHING_STREAMED,
): RecordFailure => {
  const { reason, released, dispatched, refused, retryable, tries, usage } = failure;
  const cause = storableCause(failure.cause, (text) => clipText(text, MAX_MESSAGE_CHARS));
  return {
    type: 'RecordFailure',
    now,
    data: {
      attempt,
      reason,
      cause,
      ...(released ? { released } : {}),
      dispatched,
      ...(refused ? { refused } : {}),
      retryable,
      ...(tries === undefined ? {} : { tries }),
      ...streamed,
      usage: usage ? { ...usage, estimated: false } : null,
    },
  };
};
