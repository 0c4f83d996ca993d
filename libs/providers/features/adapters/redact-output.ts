import type { Cause } from '@antiphon/contracts/causes';
import { ModelFailure } from '@antiphon/providers-domain';
import type { ModelAnswer, ModelSink } from '@antiphon/providers-domain';
import type { JsonValue } from '@antiphon/kernel';
import { needlesOf, REDACTED, redactNeedles, type Redact } from '@antiphon/observability';

/** Minimum length of a secret that is redacted in answers: a shorter one may be an ordinary word. */
const MIN_SECRET_CHARS = 8;

/** Length from which the start of a secret at the end of a text is redacted as well. */
const PARTIAL_SECRET_CHARS = 16;

/** Returns the texts that must not leave a provider's answer. */
export const answerNeedles = (secrets: readonly string[]): readonly string[] =>
  needlesOf(secrets, MIN_SECRET_CHARS);

const redactJson = (value: JsonValue, needles: readonly string[]): JsonValue => {
  if (typeof value === 'string') return redactNeedles(value, needles);
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map((item: JsonValue) => redactJson(item, needles));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [redactNeedles(key, needles), redactJson(item, needles)]),
  );
};

/** Returns the length of the longest end of `text` that may be the start of the needle. */
const openEnd = (text: string, needle: string): number => {
  const first = needle[0] ?? '';
  for (let at = text.indexOf(first, Math.max(0, text.length - needle.length + 1)); at !== -1;) {
    if (needle.startsWith(text.slice(at))) return text.length - at;
    at = text.indexOf(first, at + 1);
  }
  return 0;
};

/**
 * Redacts a text that arrives in pieces. It keeps back at most the length of the longest needle, so
 * that a secret is also found when it is split.
 */
export class TextRedactor {
  private carry = '';
  private sent = '';

  constructor(
    private readonly needles: readonly string[],
    private readonly send: (text: string) => void,
  ) {}

  /** All text that was sent. */
  get text(): string {
    return this.sent;
  }

  add(delta: string): void {
    const text = redactNeedles(this.carry + delta, this.needles);
    const open = this.needles.reduce((longest, needle) => Math.max(longest, openEnd(text, needle)), 0);
    this.carry = text.slice(text.length - open);
    this.emit(text.slice(0, text.length - open));
  }

  /** Sends what was kept back. */
  end(): void {
    const rest = this.carry;
    this.carry = '';
    this.emit(rest.length < PARTIAL_SECRET_CHARS ? rest : REDACTED);
  }

  private emit(text: string): void {
    if (text === '') return;
    this.sent += text;
    this.send(text);
  }
}

/**
 * Returns false for a state that has a secret, or whose thought lost one. It is signed, so that it
 * is dropped instead of changed.
 */
const isStateClean = (state: string, needles: readonly string[]): boolean =>
  needles.every((needle) => !state.includes(needle) && !state.includes(JSON.stringify(needle).slice(1, -1)));

const redactAnswer = (
  { providerState, keepsProviderState, ...answer }: ModelAnswer,
  needles: readonly string[],
  streamed: Pick<ModelAnswer, 'text' | 'thought'>,
): ModelAnswer => {
  // The texts of the sink, which the frames divide.
  const thought = streamed.thought || redactNeedles(answer.thought, needles);
  const isStateWhole =
    providerState !== undefined && thought === answer.thought && isStateClean(providerState, needles);
  return {
    ...answer,
    text: streamed.text || redactNeedles(answer.text, needles),
    thought,
    ...(isStateWhole ? { providerState } : {}),
    ...(isStateWhole && keepsProviderState ? { keepsProviderState } : {}),
    toolCalls: answer.toolCalls.map(({ providerCallId, name, input, ...rest }) => ({
      ...rest,
      providerCallId: redactNeedles(providerCallId, needles),
      name: redactNeedles(name, needles),
      input: redactJson(input, needles),
    })),
    ...(answer.model === undefined ? {} : { model: redactNeedles(answer.model, needles) }),
  };
};

const redactCause = ({ kind, ...fields }: Cause, redact: Redact): Cause => {
  const redacted = Object.entries(fields).map(([name, field]: [string, unknown]) => {
    if (typeof field === 'string') return [name, redact(field)];
    return [name, field !== null && typeof field === 'object' ? redactCause(field as Cause, redact) : field];
  });
  return { kind, ...Object.fromEntries(redacted) } as Cause;
};

/** Returns a failure without secrets in its message. */
export const redactFailure = (error: unknown, redact: Redact): unknown => {
  if (!(error instanceof ModelFailure) || redact(error.message) === error.message) return error;
  return new ModelFailure({ ...error, why: redactCause(error.why, redact) });
};

/**
 * Runs a call whose provider may echo the secrets in its answer. Nothing that reaches the sink, the
 * answer or the failure contains one.
 */
export const completeRedacted = async (
  complete: (sink: ModelSink) => Promise<ModelAnswer>,
  sink: ModelSink,
  { needles, redact }: { readonly needles: readonly string[]; readonly redact: Redact },
): Promise<ModelAnswer> => {
  if (needles.length === 0) return complete(sink);
  const text = new TextRedactor(needles, (delta) => sink.onText(delta));
  const thought = new TextRedactor(needles, (delta) => sink.onThought(delta));
  const end = (): Pick<ModelAnswer, 'text' | 'thought'> => {
    thought.end();
    text.end();
    return { text: text.text, thought: thought.text };
  };
  try {
    const answer = await complete({
      onText: (delta) => text.add(delta),
      onThought: (delta) => thought.add(delta),
    });
    return redactAnswer(answer, needles, end());
  } catch (error) {
    end(); // the text so far is recorded with the failure
    throw redactFailure(error, redact);
  }
};
