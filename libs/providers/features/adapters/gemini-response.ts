import { cacheTokensOf } from '@antiphon/kernel';
import type { ModelAnswer, ModelUsage, ReportedInput } from '@antiphon/providers-domain';
import { stateOfParts } from './gemini-state.js';
import type { AnswerPart } from './gemini-state.js';
import { ToolCallBounds, countOf, fieldsOf, listOf, textOf } from '../transport/answer-builder.js';
import type { AnswerBuilder, Fields, RawToolCall } from '../transport/answer-builder.js';
import { clipLine } from '../transport/error-text.js';
import { brokenAnswer } from '../transport/failures.js';

/** https://ai.google.dev/api/generate-content#FinishReason */
const FINISH_REASONS: Readonly<Record<string, ModelAnswer['finishReason']>> = {
  STOP: 'stop',
  // Of compatible servers.
  FUNCTION_CALL: 'tool_calls',
  MAX_TOKENS: 'length',
  SAFETY: 'content_filter',
  RECITATION: 'content_filter',
  BLOCKLIST: 'content_filter',
  PROHIBITED_CONTENT: 'content_filter',
  SPII: 'content_filter',
  MODEL_ARMOR: 'content_filter',
  IMAGE_SAFETY: 'content_filter',
  IMAGE_PROHIBITED_CONTENT: 'content_filter',
  IMAGE_RECITATION: 'content_filter',
};

/** Reasons of an answer that the model could not write. Another try may have another end. */
const FAILURES = {
  MALFORMED_FUNCTION_CALL: 'invalid_call',
  MALFORMED_RESPONSE: 'invalid_answer',
  UNEXPECTED_TOOL_CALL: 'unexpected_call',
} as const;
/** Reason of a refusal of the request's history, which another try does not change. */
const MISSING_SIGNATURE = 'MISSING_THOUGHT_SIGNATURE';
const UNSPECIFIED = /_UNSPECIFIED$/;
const MAX_DETAIL = 200;

const ownValue = <T>(record: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined;

/** Reads the input of a usage. It includes its cached part. */
const readInput = (value: Fields): ReportedInput | null => {
  const prompt = countOf(value['promptTokenCount']);
  if (prompt === null) return null;
  const inputTokens = prompt + (countOf(value['toolUsePromptTokenCount']) ?? 0);
  const cacheReadTokens = Math.min(countOf(value['cachedContentTokenCount']) ?? 0, inputTokens);
  return { inputTokens, ...cacheTokensOf({ cacheReadTokens }) };
};

/** Returns the sum of counts, without absent ones. Null if one is not a count. */
const sumOf = (values: readonly unknown[]): number | null => {
  const counts = values.map((value) => (value === undefined || value === null ? 0 : countOf(value)));
  return counts.includes(null) ? null : counts.reduce<number>((sum, count) => sum + (count ?? 0), 0);
};

/**
 * Reads a usage. Thoughts are counted apart from the answer, and both are output. A count that is 0
 * is left out. https://ai.google.dev/api/generate-content#UsageMetadata
 */
const readUsage = (value: Fields): ModelUsage | null => {
  const input = readInput(value);
  const written = sumOf([value['candidatesTokenCount'], value['thoughtsTokenCount']]);
  if (input === null || written === null) return null;
  // Some servers count the thoughts in the total alone.
  const total = countOf(value['totalTokenCount']) ?? 0;
  return { ...input, outputTokens: Math.max(written, total - input.inputTokens) };
};

/** More parts than an answer has: calls are bounded, and signed texts lie between them. */
const MAX_PARTS = 1_000;

/** Collects the responses of a stream, or a whole one, into an answer. */
export class GeminiReader {
  private readonly parts: AnswerPart[] = [];
  private readonly calls: RawToolCall[] = [];
  private readonly bounds = new ToolCallBounds();
  private lastUsage: Fields | undefined;
  private finishReason: string | null = null;
  private detail = '';
  private isBlocked = false;

  constructor(private readonly answer: AnswerBuilder) {}

  /** Reads a part of a stream, or a whole response. Returns false if it is none. */
  response(value: unknown): boolean {
    const fields = fieldsOf(value);
    if (fields === undefined) return false;
    this.answer.model(textOf(fields['modelVersion']));
    // Counts of a stream are running totals.
    this.lastUsage = fieldsOf(fields['usageMetadata']) ?? this.lastUsage;
    const feedback = fieldsOf(fields['promptFeedback']);
    const blockReason = textOf(feedback?.['blockReason']);
    if (blockReason !== '' && !UNSPECIFIED.test(blockReason)) this.isBlocked = true;
    const candidate = listOf(fields['candidates'])
      .map(fieldsOf)
      .find((one) => (one?.['index'] ?? 0) === 0);
    if (candidate !== undefined) this.readCandidate(candidate);
    return candidate !== undefined || feedback !== undefined;
  }

  /** Reads an answer that is not streamed: a response, or the list of a stream's responses. */
  whole(value: unknown): void {
    const responses = Array.isArray(value) ? listOf(value) : [value];
    const known = responses.map((one) => this.response(one));
    if (!known.includes(true)) throw brokenAnswer('not_gemini');
  }

  /** Returns true once the model has given its reason to stop, or the prompt was blocked. */
  isComplete(): boolean {
    return this.finishReason !== null || this.isBlocked;
  }

  usage(): ModelUsage | null {
    // A running total is not the usage of a stream that broke.
    return this.isComplete() && this.lastUsage !== undefined ? readUsage(this.lastUsage) : null;
  }

  /** Returns the input that was reported, also of an answer that is not complete. */
  reportedInput(): ReportedInput | null {
    return this.lastUsage === undefined ? null : readInput(this.lastUsage);
  }

  /** Returns the answer. Throws a protocol failure unless it is complete. */
  finish(): ModelAnswer {
    if (!this.isComplete()) throw this.answer.incomplete();
    const reason = this.finishReason ?? '';
    this.throwFailure(reason);
    const finishReason = this.isBlocked ? 'content_filter' : (ownValue(FINISH_REASONS, reason) ?? 'other');
    const [usage, reportedInput] = [this.usage(), this.reportedInput()];
    const answer = this.answer.finish({ toolCalls: this.calls, finishReason, usage, reportedInput });
    const providerState = stateOfParts(this.parts);
    return providerState === null ? answer : { ...answer, providerState };
  }

  private throwFailure(reason: string): void {
    const known = ownValue(FAILURES, reason);
    if (known === undefined && reason !== MISSING_SIGNATURE) return;
    const said = this.detail === '' ? '' : `: ${clipLine(this.detail, MAX_DETAIL)}`;
    const retryable = known !== undefined;
    throw brokenAnswer(known ?? 'missing_signature', { detail: `${reason}${said}`, retryable });
  }

  private readCandidate(candidate: Fields): void {
    for (const part of listOf(fieldsOf(candidate['content'])?.['parts'])) this.readPart(fieldsOf(part));
    const reason = textOf(candidate['finishReason']);
    if (reason !== '' && !UNSPECIFIED.test(reason)) this.finishReason = reason;
    this.detail = textOf(candidate['finishMessage']) || this.detail;
  }

  /** Reads a part. Parts of other types, such as files and run code, are not asked for. */
  private readPart(part: Fields | undefined): void {
    if (part === undefined) return;
    const signature = textOf(part['thoughtSignature']);
    const call = fieldsOf(part['functionCall']);
    if (call !== undefined) return this.readCall(call, signature);
    const text = textOf(part['text']);
    const kind = part['thought'] === true ? 'thought' : 'text';
    if (kind === 'thought') this.answer.thought(text);
    else this.answer.text(text);
    const last = this.parts.at(-1);
    // A part with a signature stays as it is.
    if (last?.kind === kind && last.signature === '' && signature === '') last.text += text;
    else if (text !== '' || signature !== '') this.addPart({ kind, text, signature, id: '' });
  }

  private readCall(call: Fields, signature: string): void {
    const id = textOf(call['id']);
    const { args = {} } = call;
    const json = typeof args === 'string' ? args : JSON.stringify(args);
    this.bounds.addCall();
    this.bounds.addInput(json);
    this.calls.push({ id, name: textOf(call['name']), json });
    this.addPart({ kind: 'call', text: '', signature, id });
  }

  private addPart(part: AnswerPart): void {
    if (this.parts.length === MAX_PARTS) throw brokenAnswer('too_many_parts', { detail: MAX_PARTS });
    this.parts.push(part);
  }
}
