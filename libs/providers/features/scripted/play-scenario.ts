import { ModelFailure } from '@antiphon/providers-domain';
import type { ModelAnswer, ModelRequest } from '@antiphon/providers-domain';
import type { AnswerBuilder, RawToolCall } from '../transport/answer-builder.js';
import { unreachable } from '../transport/connection-failures.js';
import { brokenAnswer, refusalFailure } from '../transport/failures.js';
import type { CallEnvironment, ProviderCall } from '../transport/provider-call.js';
import type { ScenarioReply, ScenarioStep } from './scenario.js';
import { BYTES_PER_TOKEN, countPrompt, type TurnView } from './turn-view.js';

/** Prefix of every answer, so that a script is never mistaken for a model. */
export const SCRIPTED_LABEL = '[scripted] ';

/** Waits `ms`, or without an end for null. Throws the call's failure once the call stops. */
const wait = (ms: number | null, call: ProviderCall): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = ms === null ? undefined : setTimeout(resolve, ms);
    call.onStop(() => {
      clearTimeout(timer);
      reject(call.failure ?? unreachable(false));
    });
  });

/** Destination that the errors of a scenario name. */
const TARGET = { address: '', endpoint: 'the scripted provider', model: 'scripted' };

type ScriptedError = Extract<ScenarioStep, { error: unknown }>['error'];

const throwError = (error: ScriptedError, { redact, now }: CallEnvironment): never => {
  const { status, reason, message, retryAfterMs } = error;
  if (reason === 'provider_unreachable') throw unreachable(false);
  if (reason === 'provider_timeout')
    throw new ModelFailure({
      reason,
      why: { kind: 'provider_timeout' },
      dispatched: true,
      retryable: true,
    });
  if (reason === 'provider_protocol') throw brokenAnswer('said', { detail: message });
  const headers = retryAfterMs === undefined ? {} : { 'retry-after-ms': String(retryAfterMs) };
  const body = JSON.stringify({ error: { message } });
  throw refusalFailure({ status: status ?? 500, headers, body }, TARGET, redact, now());
};

/** Returns the longest prefix of `text` within `max` UTF-8 bytes, whole characters only. */
const cutTo = (text: string, max: number): string => {
  if (Buffer.byteLength(text) <= max) return text;
  const bytes = Buffer.from(text).subarray(0, Math.max(0, max));
  return new TextDecoder('utf-8').decode(bytes, { stream: true });
};

export interface ScenarioDeps {
  readonly answer: AnswerBuilder;
  readonly call: ProviderCall;
  readonly environment: CallEnvironment;
}

/**
 * Plays one reply into an answer, under the call's timeouts and within the granted output tokens.
 */
export class ScenarioPlayer {
  private readonly toolCalls: RawToolCall[] = [];
  /** UTF-8 bytes of the answer so far. */
  private written = 0;
  private isLabelled = false;
  private isFull = false;

  constructor(
    private readonly turn: TurnView,
    private readonly request: ModelRequest,
    private readonly deps: ScenarioDeps,
  ) {}

  async play(reply: ScenarioReply): Promise<ModelAnswer> {
    const { call, answer } = this.deps;
    call.connected();
    for (const step of reply.play) {
      if (call.failure !== null) throw call.failure;
      await this.playStep(step);
      if (this.isFull) break;
    }
    return answer.finish({
      toolCalls: this.toolCalls,
      finishReason: this.finishReasonOf(reply),
      usage: reply.usage === undefined ? this.countUsage() : reply.usage,
    });
  }

  private async playStep(step: ScenarioStep): Promise<void> {
    const { call, environment } = this.deps;
    if ('delayMs' in step && step.delayMs !== undefined && step.delayMs > 0) await wait(step.delayMs, call);
    call.received();
    if ('text' in step) this.write(step.text, 'text');
    else if ('thought' in step) this.write(step.thought, 'thought');
    else if ('tool' in step) this.requestTool(step.tool);
    else if ('error' in step) throwError(step.error, environment);
    else if ('hang' in step) await wait(null, call);
  }

  private write(text: string, to: 'text' | 'thought'): void {
    const labelled = to === 'text' && !this.isLabelled ? SCRIPTED_LABEL + text : text;
    this.isLabelled ||= to === 'text';
    const fitting = cutTo(labelled, this.request.maxOutputTokens * BYTES_PER_TOKEN - this.written);
    this.isFull ||= fitting.length < labelled.length;
    this.written += Buffer.byteLength(fitting);
    this.deps.answer[to](fitting);
  }

  private requestTool(tool: Extract<ScenarioStep, { tool: unknown }>['tool']): void {
    const json = JSON.stringify(tool.input);
    const number = this.turn.toolCallsSoFar + this.toolCalls.length + 1;
    this.toolCalls.push({ id: tool.id ?? `scripted_${number}`, name: tool.name, json });
    this.written += Buffer.byteLength(tool.name + json);
  }

  private finishReasonOf(reply: ScenarioReply): ModelAnswer['finishReason'] {
    if (this.isFull) return 'length';
    return reply.finish ?? (this.toolCalls.length > 0 ? 'tool_calls' : 'stop');
  }

  private countUsage(): ModelAnswer['usage'] {
    const outputTokens = Math.min(this.request.maxOutputTokens, Math.ceil(this.written / BYTES_PER_TOKEN));
    return { inputTokens: countPrompt(this.request), outputTokens };
  }
}
