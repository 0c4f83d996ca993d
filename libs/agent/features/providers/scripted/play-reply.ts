import type { ModelAnswer, ModelRequest } from '@antiphon/agent-domain';
import type { AnswerBuilder, RawToolCall } from '../transport/answer-builder.js';
import { brokenAnswer, timedOut, unreachable } from '../transport/failure.js';
import type { Flight } from '../transport/flight.js';
import type { ScenarioReply, ScenarioStep } from './scenario.js';
import { countPrompt, countTokens } from './scripted-count.js';
import type { TurnView } from './turn-view.js';

/** Every answer begins with it: nobody shall take a script for a model. */
export const SCRIPTED_LABEL = '[scripted] ';

/** Waits, unless the flight stops first; then throws its failure. `null` waits for nothing else. */
const wait = (ms: number | null, flight: Flight): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = ms === null ? undefined : setTimeout(resolve, ms);
    flight.onStop(() => {
      clearTimeout(timer);
      reject(flight.failure ?? unreachable(false));
    });
  });

const raise = (
  { status, reason, message, retryAfterMs }: Extract<ScenarioStep, { error: unknown }>['error'],
  flight: Flight,
): never => {
  if (reason === 'provider_unreachable') throw unreachable(false);
  if (reason === 'provider_timeout') throw timedOut(true, 'a scripted answer');
  if (reason === 'provider_protocol') throw brokenAnswer(message);
  const headers = retryAfterMs === undefined ? {} : { 'retry-after-ms': String(retryAfterMs) };
  flight.refusal = { status: status ?? 500, headers, body: JSON.stringify({ error: { message } }) };
  throw unreachable(true);
};

/** The longest beginning of `text` that has at most `tokens` tokens, whole characters only. */
const cutTo = (text: string, tokens: number): string => {
  if (countTokens(text) <= tokens) return text;
  const bytes = Buffer.from(text).subarray(0, Math.max(0, tokens) * 4);
  return new TextDecoder('utf-8').decode(bytes, { stream: true });
};

interface Stage {
  readonly answer: AnswerBuilder;
  readonly flight: Flight;
  readonly turn: TurnView;
  readonly maxOutputTokens: number;
  readonly toolCalls: RawToolCall[];
  written: string;
  labelled: boolean;
  full: boolean;
}

const write = (stage: Stage, text: string, to: 'text' | 'thought'): void => {
  const labelled = to === 'text' && !stage.labelled ? SCRIPTED_LABEL + text : text;
  stage.labelled ||= to === 'text';
  const room = cutTo(stage.written + labelled, stage.maxOutputTokens).slice(stage.written.length);
  stage.full ||= room.length < labelled.length;
  stage.written += room;
  stage.answer[to](room);
};

const callTool = ({ tool }: Extract<ScenarioStep, { tool: unknown }>, stage: Stage): void => {
  const json = JSON.stringify(tool.input);
  const number = stage.turn.toolCallsSoFar + stage.toolCalls.length + 1;
  stage.toolCalls.push({ id: tool.id ?? `scripted_${number}`, name: tool.name, json });
  stage.written += tool.name + json;
};

const playStep = async (step: ScenarioStep, stage: Stage): Promise<void> => {
  if ('delayMs' in step && step.delayMs !== undefined && step.delayMs > 0)
    await wait(step.delayMs, stage.flight);
  stage.flight.received();
  if ('text' in step) write(stage, step.text, 'text');
  else if ('thought' in step) write(stage, step.thought, 'thought');
  else if ('tool' in step) callTool(step, stage);
  else if ('error' in step) raise(step.error, stage.flight);
  else if ('hang' in step) await wait(null, stage.flight);
};

const finishReasonOf = (reply: ScenarioReply, stage: Stage): ModelAnswer['finishReason'] => {
  if (stage.full) return 'length';
  return reply.finish ?? (stage.toolCalls.length > 0 ? 'tool_calls' : 'stop');
};

const usageOf = (reply: ScenarioReply, request: ModelRequest, written: string): ModelAnswer['usage'] =>
  reply.usage !== undefined
    ? reply.usage
    : {
        inputTokens: countPrompt(request),
        outputTokens: Math.min(request.maxOutputTokens, countTokens(written)),
      };

/** Plays a reply into an answer under the flight's clocks, within the tokens that were granted. */
export const playReply = async (
  reply: ScenarioReply,
  turn: TurnView,
  request: ModelRequest,
  { answer, flight }: Pick<Stage, 'answer' | 'flight'>,
): Promise<ModelAnswer> => {
  const { maxOutputTokens } = request;
  const progress = { toolCalls: [], written: '', labelled: false, full: false };
  const stage: Stage = { answer, flight, turn, maxOutputTokens, ...progress };
  flight.connected();
  for (const step of reply.play) {
    if (flight.failure !== null) throw flight.failure;
    await playStep(step, stage);
    if (stage.full) break;
  }
  return answer.finish({
    toolCalls: stage.toolCalls,
    finishReason: finishReasonOf(reply, stage),
    usage: usageOf(reply, request, stage.written),
  });
};
