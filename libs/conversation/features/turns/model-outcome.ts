import { createHash } from 'node:crypto';
import type { Cause } from '@antiphon/contracts/causes';
import type { PromptShape, Usage } from '@antiphon/contracts/agent';
import type { ModelAnswer, ModelPrompt } from '@antiphon/providers-domain';
import { estimateTokens } from '@antiphon/conversation-domain';
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
    why,
    dispatched: true,
    // A second answer as long as the first one would be paid for, too.
    retryable: why.kind !== 'tool_input_too_long',
    usage: answer.usage ?? undefined,
    reportedInput: answer.reportedInput,
    generationId: answer.generationId,
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

/** Returns the size of a response that its provider did not count, within the limit of the call. */
const estimateOutput = ({ text, thought, toolCalls }: ModelAnswer, limit: number): number => {
  const calls = toolCalls.map(({ name, input }) => name + JSON.stringify(input));
  return Math.min(limit, estimateTokens([text, thought, ...calls].join('')));
};

/**
 * Returns the usage of a response, marked as estimated where the provider did not report all of it.
 * The input is the bound of the prompt then, and the output follows from the text that arrived.
 */
const usageOf = (answer: ModelAnswer, granted: GrantedReservation): Usage => {
  if (answer.usage) return { ...answer.usage, estimated: false };
  const input = answer.reportedInput ?? { inputTokens: granted.inputBound };
  return { ...input, outputTokens: estimateOutput(answer, granted.maxOutputTokens), estimated: true };
};

/** Returns the id by which the provider tells the usage later, as the event stores it. */
const generationOf = ({ generationId }: Pick<ModelAnswer, 'generationId'>): { generationId?: string } =>
  generationId === undefined ? {} : { generationId: toStorable(generationId).slice(0, MAX_NAME_CHARS) };

/** Length of a digest, hexadecimal digits: enough to tell the parts of one session apart. */
const DIGEST_LENGTH = 12;

const digest = (text: string): string =>
  createHash('sha256').update(text).digest('hex').slice(0, DIGEST_LENGTH);

/** Returns the shape of a request's beginning, for the explanation of a session's prompt cache. */
export const shapeOf = ({ system, tools, messages, turnStart = 0 }: ModelPrompt): PromptShape => ({
  toolsDigest: digest(JSON.stringify(tools)),
  systemDigest: digest(system),
  messages: messages.length,
  earlierMessages: turnStart,
  hasContext: messages.some((message) => message.role === 'user' && message.context !== undefined),
});

/** Converts a response to the command that records it. Throws `ModelFailure`. */
export const toAnswer = (
  answer: ModelAnswer,
  streamed: Streamed & Pick<RecordAnswer['data'], 'firstTextAt' | 'prompt'>,
  call: OpenCall,
  granted: GrantedReservation,
  sessionId: string,
  now: string,
): RecordAnswer => {
  checkCalls(answer);
  const usage = usageOf(answer, granted);
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
      ...(answer.providerState === undefined ? {} : { providerState: answer.providerState }),
      ...(answer.keepsProviderState ? { keepsProviderState: answer.keepsProviderState } : {}),
      usage,
      ...(usage.estimated ? generationOf(answer) : {}),
      costMicroUsd: price && costMicroUsd(price, usage),
    },
  };
};

const NOTHING_STREAMED: Streamed = { text: '', thought: '', frames: [] };

type Failure = Pick<RecordFailure['data'], 'reason' | 'cause' | 'released' | 'dispatched' | 'retryable'> &
  Pick<Partial<ModelFailure>, 'refused' | 'usage' | 'reportedInput' | 'generationId'> & {
    /** Output limit of the call, once it is granted. */
    readonly maxOutputTokens?: number | undefined;
    readonly tries?: number;
  };

/**
 * Returns the usage of a failed attempt. With the input alone, the output is the limit of the call.
 * The provider may have written more than arrived, and thoughts that it does not send.
 */
const usageOfFailure = ({ usage, reportedInput, refused, maxOutputTokens }: Failure): Usage | null => {
  if (usage) return { ...usage, estimated: false };
  if (!reportedInput || refused || maxOutputTokens === undefined) return null;
  return { ...reportedInput, outputTokens: maxOutputTokens, estimated: true };
};

/** Converts a failed attempt to the command that records it, with the text that was streamed. */
export const toFailure = (
  attempt: number,
  failure: Failure,
  now: string,
  streamed: Streamed = NOTHING_STREAMED,
): RecordFailure => {
  const { reason, released, dispatched, refused, retryable, tries } = failure;
  const usage = usageOfFailure(failure);
  const isUnknown = dispatched && !refused && (usage === null || usage.estimated);
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
      usage,
      ...(isUnknown ? generationOf(failure) : {}),
    },
  };
};
