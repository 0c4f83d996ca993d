/** Facts of a kind of provider. Everything that lists the kinds reads them here. */
interface ProviderKindFacts {
  /** Adapter that speaks to it; null for a kind that this version does not have. */
  readonly adapter: 'anthropic' | 'bedrock' | 'cli' | 'gemini' | 'openai' | 'scripted' | null;
  /** Conventional variable of the key; null for a kind that needs no key. */
  readonly keyVariable: string | null;
  /** Null for a kind that needs `base_url`, or that has no address. */
  readonly baseUrl: string | null;
  /** Model of agents that name none; null if each agent has to name its own. */
  readonly defaultModel: string | null;
  /** Model, in which `*` stands for any characters, and US dollars per million tokens in and out. */
  readonly prices: readonly (readonly [model: string, inputUsd: number, outputUsd: number])[];
}

/**
 * The kinds, in the order in which a start without a file looks for their keys. Prices of the file
 * have precedence, and a model without a price is refused under a money limit. There is no
 * `gpt-4o*`: gpt-4o-mini and gpt-4o-2024-05-13 have other prices.
 */
const KINDS = {
  anthropic: {
    adapter: 'anthropic',
    keyVariable: 'ANTHROPIC_API_KEY',
    baseUrl: 'https://api.anthropic.com',
    defaultModel: 'claude-sonnet-4-5',
    prices: [
      ['claude-sonnet-*', 3, 15],
      ['claude-3-*-sonnet-*', 3, 15],
    ],
  },
  openai: {
    adapter: 'openai',
    keyVariable: 'OPENAI_API_KEY',
    baseUrl: 'https://api.openai.com/v1',
    defaultModel: 'gpt-4o',
    prices: [
      ['gpt-4o', 2.5, 10],
      ['gpt-4o-2024-08-06', 2.5, 10],
      ['gpt-4o-2024-11-20', 2.5, 10],
    ],
  },
  'openai-compatible': {
    adapter: 'openai',
    keyVariable: null,
    baseUrl: null,
    defaultModel: null,
    prices: [],
  },
  openrouter: {
    adapter: 'openai',
    keyVariable: 'OPENROUTER_API_KEY',
    baseUrl: 'https://openrouter.ai/api/v1',
    defaultModel: 'anthropic/claude-sonnet-4.5',
    prices: [
      ['anthropic/claude-sonnet-*', 3, 15],
      ['openai/gpt-4o', 2.5, 10],
    ],
  },
  gemini: {
    adapter: 'gemini',
    keyVariable: 'GEMINI_API_KEY',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    defaultModel: 'gemini-2.5-flash',
    prices: [
      ['gemini-2.5-flash', 0.3, 2.5],
      ['gemini-2.5-flash-lite', 0.1, 0.4],
    ],
  },
  'azure-openai': {
    adapter: 'openai',
    keyVariable: 'AZURE_OPENAI_API_KEY',
    // The name of the resource is a part of the address, and models are names of deployments.
    baseUrl: null,
    defaultModel: null,
    prices: [],
  },
  bedrock: {
    adapter: 'bedrock',
    keyVariable: 'AWS_BEARER_TOKEN_BEDROCK',
    // The region is a part of the address.
    baseUrl: null,
    defaultModel: null,
    prices: [['*anthropic.claude-sonnet-*', 3, 15]],
  },
  ollama: {
    adapter: 'openai',
    keyVariable: null,
    baseUrl: 'http://127.0.0.1:11434/v1',
    defaultModel: null,
    prices: [['*', 0, 0]],
  },
  // A local program, which `program` names.
  cli: {
    adapter: 'cli',
    keyVariable: null,
    baseUrl: null,
    defaultModel: null,
    prices: [],
  },
  scripted: {
    adapter: 'scripted',
    keyVariable: null,
    baseUrl: null,
    defaultModel: 'scripted',
    prices: [['*', 0, 0]],
  },
} as const satisfies Readonly<Record<string, ProviderKindFacts>>;

export type ProviderKind = keyof typeof KINDS;
export const PROVIDER_FACTS: Readonly<Record<ProviderKind, ProviderKindFacts>> = KINDS;
export const PROVIDER_KINDS = Object.keys(KINDS) as [ProviderKind, ...ProviderKind[]];

/** Kinds that this version can call. */
export const CALLABLE_KINDS = PROVIDER_KINDS.filter((kind) => KINDS[kind].adapter !== null);

const KEY_ID = /ACCESS_KEY_ID$/;

/**
 * Returns the variables of a provider's key. An access key of AWS has three: the variable of its id
 * names the others.
 */
export const keyVariablesOf = ({
  kind,
  apiKeyEnv,
}: {
  readonly kind: ProviderKind;
  readonly apiKeyEnv: string | null;
}): readonly string[] => {
  const name = apiKeyEnv ?? PROVIDER_FACTS[kind].keyVariable;
  if (name === null) return [];
  if (kind !== 'bedrock' || !KEY_ID.test(name)) return [name];
  return [name, name.replace(KEY_ID, 'SECRET_ACCESS_KEY'), name.replace(KEY_ID, 'SESSION_TOKEN')];
};

/** Returns the facts of a kind, or null if `kind` is not one. */
export const factsOfKind = (kind: string): ProviderKindFacts | null =>
  Object.hasOwn(KINDS, kind) ? PROVIDER_FACTS[kind as ProviderKind] : null;
