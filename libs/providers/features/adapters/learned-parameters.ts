import { findParameters } from '@antiphon/config';
import type { AntiphonConfig, KnownParameters, ModelParameters, ProviderConfig } from '@antiphon/config';
import { ModelFailure } from '@antiphon/providers-domain';
import type { ModelAnswer, ModelRequest, ModelSink } from '@antiphon/providers-domain';
import { learnFrom } from './parameter-lessons.js';

/** Number of models at a provider whose parameters are remembered. Clients choose the names. */
const MAX_MODELS = 1_000;
/** Number of lessons in one call: a server that refuses everything is asked that often. */
const MAX_LESSONS = 6;

/** Makes one request with these parameters. */
export type SendRequest = (parameters: ModelParameters, sink: ModelSink) => Promise<ModelAnswer>;

/**
 * Parameters of the models at one provider: by the configuration and the table of families, and
 * corrected by what the provider refused. Shared by all keys of the provider, for the time of the
 * process.
 */
export class LearnedParameters {
  private readonly known = new Map<string, KnownParameters>();

  constructor(
    private readonly config: Partial<Pick<AntiphonConfig, 'parameters'>>,
    private readonly provider: Pick<ProviderConfig, 'name' | 'kind'>,
  ) {}

  of(model: string): ModelParameters {
    return this.find(model).parameters;
  }

  /**
   * Sends a request. Repeats it at once where the provider refuses a parameter by its name, and
   * remembers parameters that it accepts. A refused request is not charged.
   */
  async complete(request: ModelRequest, sink: ModelSink, send: SendRequest): Promise<ModelAnswer> {
    const { model } = request;
    const { kind } = this.provider;
    const own = kind === 'bedrock' ? 'anthropic' : kind;
    const format = own === 'anthropic' || own === 'gemini' ? own : 'openai';
    const { fixed, parameters: known } = this.find(model);
    let parameters = known;
    const tried = new Set<string>();
    for (;;) {
      const observed = new ObservedSink(sink);
      try {
        const answer = await send(parameters, observed);
        this.remember(model, { parameters, fixed });
        return answer;
      } catch (error) {
        tried.add(JSON.stringify(parameters));
        if (!(error instanceof ModelFailure) || observed.hasContent || request.signal.aborted) throw error;
        const learned = learnFrom(error, { parameters, request, format }, fixed);
        if (learned === null || tried.has(JSON.stringify(learned)) || tried.size > MAX_LESSONS) throw error;
        parameters = learned;
      }
    }
  }

  private find(model: string): KnownParameters {
    const known = this.known.get(model) ?? findParameters(this.config, this.provider, model);
    this.remember(model, known);
    return known;
  }

  /** Keeps the object of known parameters, by which rendered bodies are found again. */
  private remember(model: string, { parameters, fixed }: KnownParameters): void {
    if (this.known.get(model)?.parameters === parameters) return;
    if (this.known.size >= MAX_MODELS && !this.known.has(model))
      this.known.delete(this.known.keys().next().value as string);
    this.known.set(model, { parameters, fixed });
  }
}

/** Marks the state of an answer that the provider wants in later turns, too. */
export const withScope = (answer: ModelAnswer, { reasoning }: ModelParameters): ModelAnswer =>
  reasoning === 'session' && answer.providerState !== undefined
    ? { ...answer, keepsProviderState: true }
    : answer;

/** Passes deltas on, and knows whether there were any. */
class ObservedSink implements ModelSink {
  hasContent = false;

  constructor(private readonly sink: ModelSink) {}

  onText(delta: string): void {
    this.hasContent = true;
    this.sink.onText(delta);
  }

  onThought(delta: string): void {
    this.hasContent = true;
    this.sink.onThought(delta);
  }
}
