import type { OpenCall, ToolDeferral, ToolOutcome } from '@antiphon/conversation-domain';
import { TURN_END_STATUS, isTurnEndEvent } from '@antiphon/contracts/agent';
import {
  contextFrom,
  countFailure,
  defineCounter,
  defineHistogram,
  errorTypeOf,
  namedTraceparent,
  recordSpan,
  timeOfUuid,
  withSpan,
} from '@antiphon/observability';
import type { OpenSpan, RequestContext, SpanAttributes } from '@antiphon/observability';
import type { FoldedEvent, TurnOrigin } from '../sessions/session-fold.js';
import type { CallResult } from './model-call.js';

const turnSeconds = defineHistogram(
  'antiphon_turn_duration_seconds',
  'From the request of a turn until its end is committed, its wait in the queue included',
);
const toolSeconds = defineHistogram('antiphon_tool_duration_seconds', 'Tool calls, by tool and outcome');
const callSeconds = defineHistogram(
  'gen_ai.client.operation.duration',
  'Calls of model providers, from the request to the whole answer',
);
const firstChunkSeconds = defineHistogram(
  'gen_ai.client.operation.time_to_first_chunk',
  'Calls of model providers, from the request to the first piece of the answer',
);
const tokens = defineCounter('antiphon_model_tokens', 'Tokens of answered model calls, as they are charged');

/**
 * Returns the context of a turn's work: its log lines, messages and spans belong to the turn's
 * span.
 */
export const turnContext = (
  origin: TurnOrigin | undefined,
  known: Pick<RequestContext, 'workspace' | 'sessionId'> & { readonly turnId: string },
): RequestContext => {
  const context = contextFrom('agent', {
    ...origin,
    traceparent: namedTraceparent(origin?.traceparent, known.turnId),
  });
  return { ...context, ...known };
};

export interface TurnPlace {
  readonly workspace: string;
  readonly sessionId: string;
  readonly agentId: string;
}

const reportTurn = ({ event, metadata }: FoldedEvent, place: TurnPlace, endedAt: number): void => {
  if (!isTurnEndEvent(event)) return;
  const status = TURN_END_STATUS[event.type];
  const { turnId } = event.data;
  const startedAt = timeOfUuid(turnId) ?? endedAt;
  turnSeconds.record(Math.max(0, endedAt - startedAt) / 1_000, { status });
  const failure = event.type === 'TurnFailed' ? event.data.code : undefined;
  if (failure !== undefined) countFailure('turn', 'failed', failure);
  recordSpan({
    name: `invoke_agent ${place.agentId}`,
    uuid: turnId,
    traceparent: metadata.traceparent,
    startedAt,
    endedAt,
    ...(failure === undefined ? {} : { errorType: failure }),
    attributes: {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.id': place.agentId,
      'gen_ai.conversation.id': place.sessionId,
      'antiphon.workspace': place.workspace,
      'antiphon.request.id': metadata.correlationId,
      'antiphon.turn.id': turnId,
      'antiphon.turn.status': status,
    },
  });
};

/** Records metrics and spans of the turns that ended with these events of this process. */
export const reportEndedTurns = (events: readonly FoldedEvent[], place: TurnPlace, now: number): void =>
  events.forEach((event) => reportTurn(event, place, now));

/** A model call to observe. `kind` is the provider's name in the GenAI conventions. */
export interface ObservedCall {
  readonly call: OpenCall;
  readonly kind: string;
  readonly maxOutputTokens: number;
  readonly agentId: string;
}

const resultAttributes = (
  span: OpenSpan,
  { command }: CallResult,
  responseModel: string | undefined,
): SpanAttributes => {
  const { usage } = command.data;
  if (command.type === 'RecordFailure') span.fail(command.data.reason);
  return {
    'gen_ai.response.model': responseModel,
    'gen_ai.response.finish_reasons':
      command.type === 'RecordAnswer' ? [command.data.finishReason] : undefined,
    'gen_ai.usage.input_tokens': usage?.inputTokens,
    'gen_ai.usage.output_tokens': usage?.outputTokens,
    'gen_ai.usage.cache_read.input_tokens': usage?.cacheReadTokens,
    'gen_ai.usage.cache_creation.input_tokens': usage?.cacheWriteTokens,
    'antiphon.usage.estimated': usage?.estimated,
  };
};

const measureCall = (
  { kind, call }: ObservedCall,
  { command }: CallResult,
  seconds: { readonly whole: number; readonly first: number | null },
): void => {
  const labels = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': kind,
    'gen_ai.request.model': call.model,
  };
  const failed = command.type === 'RecordFailure';
  callSeconds.record(seconds.whole, failed ? { ...labels, 'error.type': command.data.reason } : labels);
  if (seconds.first !== null) firstChunkSeconds.record(seconds.first, labels);
  if (failed) countFailure('provider', kind, command.data.reason);
  const { usage } = command.data;
  if (!usage) return;
  tokens.add(usage.inputTokens, { ...labels, 'gen_ai.token.type': 'input' });
  tokens.add(usage.outputTokens, { ...labels, 'gen_ai.token.type': 'output' });
};

/** Reports the progress of a model call. */
export interface CallProbe {
  /** Reports the first part of the response. */
  onFirst(): void;
  /** Reports the model that responded, as the provider names it. */
  answeredBy(model: string | undefined): void;
}

/** Form of a model name. Any other name from a provider is left out of the span. */
const MODEL_NAME = /^[\w.:/@-]{1,100}$/;

/** Records a provider call as a `chat` span and in metrics. */
export const observeCall = (
  observed: ObservedCall,
  work: (probe: CallProbe) => Promise<CallResult>,
): Promise<CallResult> => {
  const { call, kind, maxOutputTokens, agentId } = observed;
  const attributes: SpanAttributes = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': kind,
    'gen_ai.request.model': call.model,
    'gen_ai.request.max_tokens': maxOutputTokens,
    'gen_ai.agent.id': agentId,
    'antiphon.attempt': call.attempt,
  };
  return withSpan({ name: `chat ${call.model}`, role: 'client', attributes }, async (span) => {
    const startedAt = performance.now();
    let first: number | null = null;
    let answeredBy: string | undefined;
    const result = await work({
      onFirst: () => (first ??= (performance.now() - startedAt) / 1_000),
      answeredBy: (model) => (answeredBy = MODEL_NAME.test(model ?? '') ? model : undefined),
    });
    span.set(resultAttributes(span, result, answeredBy));
    measureCall(observed, result, { whole: (performance.now() - startedAt) / 1_000, first });
    return result;
  });
};

const outcomeName = ({ type, data }: ToolOutcome | ToolDeferral): string => {
  if (type === 'ToolCallDeferred') return 'deferred';
  if (type === 'ToolCallCompleted') return data.isError ? 'tool_error' : 'completed';
  return type === 'ToolCallFailed' ? data.code : 'unknown';
};

/**
 * Records a tool call as an `execute_tool` span and in metrics. `name` is a tool that the agent was
 * given.
 */
export const observeTool = (
  { name, callId }: { readonly name: string; readonly callId: string },
  work: () => Promise<ToolOutcome | ToolDeferral>,
): Promise<ToolOutcome | ToolDeferral> => {
  const attributes: SpanAttributes = {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': name,
    'gen_ai.tool.call.id': callId,
    'gen_ai.tool.type': 'function',
  };
  return withSpan({ name: `execute_tool ${name}`, attributes }, async (span) => {
    const startedAt = performance.now();
    const measure = (outcome: string): void => {
      if (outcome !== 'completed') span.fail(outcome);
      toolSeconds.record((performance.now() - startedAt) / 1_000, { tool: name, outcome });
    };
    try {
      const outcome = await work();
      measure(outcomeName(outcome));
      return outcome;
    } catch (error) {
      measure(errorTypeOf(error));
      throw error;
    }
  });
};
