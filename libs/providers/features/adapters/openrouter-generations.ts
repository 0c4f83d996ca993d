import { cacheTokensOf } from '@antiphon/kernel';
import { ModelFailure } from '@antiphon/providers-domain';
import type { ModelUsage } from '@antiphon/providers-domain';
import type { OpenAiDeps } from './openai.adapter.js';
import { endpointOf } from './provider-settings.js';
import { countOf, fieldsOf, textOf } from '../transport/answer-builder.js';
import { toModelFailure } from '../transport/failures.js';
import { ProviderCall } from '../transport/provider-call.js';
import type { Generation } from '../transport/provider-call.js';

/**
 * Reads the counts of the model's own tokenizer, by which the vendor bills. Reasoning is a part of
 * the completion. Null for another generation, and for one whose counts are not known yet.
 * https://openrouter.ai/docs/api/api-reference/generations
 */
const readGeneration = (value: unknown, id: string): ModelUsage | null => {
  const data = fieldsOf(fieldsOf(value)?.['data']);
  const count = (name: string): number | null =>
    countOf(data?.[`native_tokens_${name}`]) ?? countOf(data?.[`tokens_${name}`]);
  const [inputTokens, outputTokens] = [count('prompt'), count('completion')];
  if (textOf(data?.['id']) !== id || inputTokens === null || outputTokens === null) return null;
  const cacheReadTokens = Math.min(countOf(data?.['native_tokens_cached']) ?? 0, inputTokens);
  return { inputTokens, ...cacheTokensOf({ cacheReadTokens }), outputTokens };
};

/**
 * Creates the look-up of generations: `GET {baseUrl}/generation?id=…`. OpenRouter knows one some
 * seconds after its end, and answers 404 until then.
 */
export const createGenerationReader =
  (
    { transport, baseUrl, limitsOf, redact }: OpenAiDeps,
    headers: Readonly<Record<string, string>>,
  ): ((generation: Generation) => Promise<ModelUsage | null>) =>
  async (generation) => {
    const { id, model, signal } = generation;
    const url = endpointOf(baseUrl, '/generation');
    url.searchParams.set('id', id);
    const call = new ProviderCall(false, limitsOf(generation), signal);
    try {
      return readGeneration(await transport.fetchJson({ url, headers, model, body: null }, call), id);
    } catch (error) {
      if (error instanceof ModelFailure && error.status === 404) return null;
      throw toModelFailure(error, call, redact);
    } finally {
      call.end();
    }
  };
