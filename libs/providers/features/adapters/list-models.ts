import type { ProviderModel, ProviderTest } from '@antiphon/contracts/agent';
import { PROVIDER_FACTS, findPrice } from '@antiphon/config';
import type { AntiphonConfig, ProviderConfig } from '@antiphon/config';
import { ModelFailure } from '@antiphon/providers-domain';
import { anthropicHeaders } from './anthropic.adapter.js';
import { keyHeaders } from './openai.adapter.js';
import { baseUrlOf, endpointOf } from './provider-settings.js';
import { fieldsOf, textOf } from '../transport/answer-builder.js';
import type { HttpTransport } from '../transport/http-transport.js';
import type { ProviderRequest } from '../transport/http-transport.js';
import { FIXED_PROVIDER_LIMITS, ProviderCall } from '../transport/provider-call.js';
import type { ProviderAdapter, ProviderLimits } from '../transport/provider-call.js';

/** Maximum models of a list. */
const MAX_MODELS = 2_000;
const MAX_ID = 200;
/** Fewer output tokens are refused by some vendors. */
const MIN_OUTPUT = 16;

/** All that a look at a provider needs. */
export interface ModelListing {
  readonly provider: ProviderConfig;
  readonly apiKey: string | null;
  readonly transport: HttpTransport;
  readonly config: Pick<AntiphonConfig, 'prices'>;
  /** Adapter of the provider with this key. */
  readonly called: ProviderAdapter;
  /** Model to call if the provider lists none. */
  readonly model: string | undefined;
}

/** Limits of a look at a provider, for which a person waits. */
const LIMITS: ProviderLimits = {
  ...FIXED_PROVIDER_LIMITS,
  ...{ connectMs: 10_000, firstByteMs: 20_000, idleMs: 20_000, totalMs: 20_000, retryTimeouts: false },
  ownerOf: () => 'a test of a provider',
};

const headersOf = ({ provider, apiKey }: ModelListing): Record<string, string> => {
  const { adapter } = PROVIDER_FACTS[provider.kind];
  if (adapter === 'anthropic') return anthropicHeaders(baseUrlOf(provider), apiKey ?? '');
  if (adapter === 'gemini') return apiKey === null ? {} : { 'x-goog-api-key': apiKey };
  return keyHeaders({ kind: provider.kind, apiKey });
};

/**
 * Returns the addresses to read, the list of models last. OpenRouter lists its models without a
 * key, so that its key is looked at first.
 */
const urlsOf = (provider: ProviderConfig): readonly URL[] => {
  const base = baseUrlOf(provider);
  const { adapter } = PROVIDER_FACTS[provider.kind];
  const url = endpointOf(base, adapter === 'anthropic' ? '/v1/models' : '/models');
  if (adapter === 'anthropic') url.searchParams.set('limit', '1000');
  if (adapter === 'gemini') url.searchParams.set('pageSize', '1000');
  return provider.kind === 'openrouter' ? [endpointOf(base, '/key'), url] : [url];
};

const numberOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : null;

/** Names of the field that has the size of a model's context, by vendor. */
const CONTEXT_FIELDS = ['context_length', 'max_input_tokens', 'inputTokenLimit', 'max_model_len'];

const imagesOf = (fields: Readonly<Record<string, unknown>>): boolean | null => {
  const inputs = fieldsOf(fields['architecture'])?.['input_modalities'];
  return Array.isArray(inputs) ? inputs.includes('image') : null;
};

const toModel = (listing: ModelListing, entry: unknown): ProviderModel[] => {
  const fields = fieldsOf(entry);
  const id = textOf(fields?.['id'] ?? fields?.['name'])?.replace(/^models\//, '') ?? '';
  if (!fields || id === '' || id.length > MAX_ID || /\s/.test(id)) return [];
  const { provider, config } = listing;
  const price = findPrice({ ...config, providers: [provider] }, provider.name, id);
  const contexts = CONTEXT_FIELDS.flatMap((name) => numberOf(fields[name]) ?? []);
  return [
    {
      id,
      contextTokens: contexts[0] ?? null,
      images: imagesOf(fields),
      price: price && {
        inputMicroUsdPerMtok: price.inputMicroUsdPerMtok,
        outputMicroUsdPerMtok: price.outputMicroUsdPerMtok,
      },
    },
  ];
};

/** A server that answers with something else than a list of models. */
class NoModelList extends Error {
  constructor() {
    super('the server answers, but not with a list of models: check the kind and the address');
  }
}

const problemOf = (failure: ModelFailure): NonNullable<ProviderTest['problem']> => {
  const { status, refusal = '', reason } = failure;
  if (status === 401 || /invalid_api_key|api key not valid|API_KEY_INVALID/i.test(refusal))
    return 'wrong_key';
  if (status === 402 || status === 403) return 'no_access';
  if (status === 404 || status === 405) return 'not_found';
  if (status !== undefined && (status === 429 || status === 408 || status >= 500)) return 'busy';
  if (reason === 'provider_unreachable' || reason === 'provider_timeout') return 'unreachable';
  return 'unexpected';
};

const read = async ({ transport }: ModelListing, request: ProviderRequest): Promise<unknown> => {
  const call = new ProviderCall(false, LIMITS, new AbortController().signal);
  try {
    return await transport.fetchJson(request, call);
  } finally {
    call.end();
  }
};

const UNREADABLE = { message: 'the response of the provider cannot be read' };

/** A look at a provider that failed, as a test reports it. */
export const toFailedTest = (error: unknown, durationMs: number): ProviderTest => {
  const failure = error instanceof ModelFailure ? error : null;
  const { message } = failure ?? (error instanceof NoModelList ? error : UNREADABLE);
  return {
    works: false,
    problem: failure ? problemOf(failure) : error instanceof NoModelList ? 'not_found' : 'unexpected',
    status: failure?.status ?? null,
    message,
    durationMs,
    models: [],
  };
};

/** Asks a provider for its models, which costs nothing. Throws a `ModelFailure`. */
const listModels = async (listing: ModelListing): Promise<ProviderModel[]> => {
  // The address of the calls has no list.
  if (PROVIDER_FACTS[listing.provider.kind].adapter === 'bedrock') throw new NoModelList();
  const headers = headersOf(listing);
  let body: unknown;
  for (const url of urlsOf(listing.provider))
    body = await read(listing, { url, headers, body: null, model: 'any' });
  const fields = fieldsOf(body);
  const entries = fields?.['data'] ?? fields?.['models'] ?? body;
  if (!Array.isArray(entries)) throw new NoModelList();
  return entries.slice(0, MAX_MODELS).flatMap((entry: unknown) => toModel(listing, entry));
};

/** Calls a model for the shortest answer. */
const callModel = async ({ provider, called }: ModelListing, model: string): Promise<void> => {
  const signal = AbortSignal.timeout(LIMITS.totalMs);
  const prompt = { provider: provider.name, model, system: '', tools: [], signal, streaming: false };
  const messages = [{ role: 'user', text: 'Answer with one word.' }] as const;
  const sink = { onText: () => undefined, onThought: () => undefined };
  await called.complete({ ...prompt, messages, maxOutputTokens: MIN_OUTPUT }, sink);
};

/**
 * Asks a provider for its models. A server without such a list is called, if a model is known.
 * Throws a `ModelFailure`.
 */
export const lookAt = async (listing: ModelListing): Promise<ProviderModel[]> => {
  try {
    return await listModels(listing);
  } catch (error) {
    const hasNoList =
      error instanceof NoModelList || (error instanceof ModelFailure && problemOf(error) === 'not_found');
    if (!hasNoList || listing.model === undefined) throw error;
    await callModel(listing, listing.model);
    return toModel(listing, { id: listing.model });
  }
};
