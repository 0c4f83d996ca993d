import type { ProviderConfig, ProviderKind } from '@antiphon/config';
import { invalid } from '@antiphon/kernel';

const BASE_URLS: Partial<Record<ProviderKind, string>> = {
  anthropic: 'https://api.anthropic.com',
  openai: 'https://api.openai.com/v1',
  openrouter: 'https://openrouter.ai/api/v1',
  ollama: 'http://127.0.0.1:11434/v1',
};

const KEY_VARIABLES: Partial<Record<ProviderKind, string>> = {
  anthropic: 'ANTHROPIC_API_KEY',
  openai: 'OPENAI_API_KEY',
  openrouter: 'OPENROUTER_API_KEY',
};

/** An environment, as `process.env` has it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Where a provider's key is, and what it is; nulls where none is wanted or none is there. */
export interface ProviderKey {
  readonly variable: string | null;
  readonly value: string | null;
}

/** Reads a provider's key. A line break that a secret's file left at its end is no part of it. */
export const keyOf = ({ kind, apiKeyEnv }: ProviderConfig, env: Environment): ProviderKey => {
  const variable = apiKeyEnv ?? KEY_VARIABLES[kind] ?? null;
  const value = variable === null ? '' : (env[variable] ?? '').trim();
  return { variable, value: value === '' ? null : value };
};

/** Whether a call without a key is bound to fail, so that it is not made. */
export const needsKey = ({ kind, apiKeyEnv }: ProviderConfig): boolean =>
  apiKeyEnv !== null || KEY_VARIABLES[kind] !== undefined;

const withoutVersion = (url: string): string => url.replace(/\/v1$/, '');

/**
 * Where a provider's SDK begins its paths, without a slash at the end. Anthropic's adds `/v1` itself, and Ollama's
 * users know its address without one; every other address is taken as it is written, as OpenAI's SDKs do.
 */
export const baseUrlOf = ({ name, kind, baseUrl }: ProviderConfig): string => {
  const given = baseUrl ?? BASE_URLS[kind];
  if (given === undefined)
    throw invalid('PROVIDER.BASE_URL_MISSING', `provider ${name}: the kind ${kind} needs a base_url`);
  const url = URL.parse(given);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw invalid('PROVIDER.BASE_URL_INVALID', `provider ${name}: base_url is not an http or https URL`);
  const plain = given.replace(/\/+$/, '');
  if (kind === 'anthropic') return withoutVersion(plain);
  return kind === 'ollama' && url.pathname === '/' ? `${plain}/v1` : plain;
};

/** A provider as `status` may show it: where it goes and whether it could, never the key. */
export interface ProviderDescription {
  readonly name: string;
  readonly kind: ProviderKind;
  /** Null for `scripted`, which goes nowhere. */
  readonly baseUrl: string | null;
  readonly keyVariable: string | null;
  /** False when a key is wanted and its variable is not set. */
  readonly ready: boolean;
  /** True for answers that no model wrote. */
  readonly scripted: boolean;
}

export const describeProvider = (provider: ProviderConfig, env: Environment): ProviderDescription => {
  const scripted = provider.kind === 'scripted';
  const key = keyOf(provider, env);
  return {
    name: provider.name,
    kind: provider.kind,
    baseUrl: scripted ? null : baseUrlOf(provider),
    keyVariable: key.variable,
    ready: key.value !== null || !needsKey(provider),
    scripted,
  };
};
