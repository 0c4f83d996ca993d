import type { ModelAnswer, ModelPrompt, ModelRequest, ModelSink } from '@antiphon/agent-domain';
import type { ProviderKind } from '@antiphon/config';

/** One configured provider: what `ModelPort` asks of the adapter that it looked up by name. */
export interface ProviderAdapter {
  readonly kind: ProviderKind;
  complete(request: ModelRequest, sink: ModelSink): Promise<ModelAnswer>;
  /** Tokens, never fewer than the provider will count. */
  inputBound(prompt: ModelPrompt): number;
  maxOutputTokens(model: string): number;
}
