import type { RouteReply, RouteRequest } from '@antiphon/client';

export type ProviderSpec = RouteRequest<'testProvider'>['body'];
export type ProviderKind = ProviderSpec['kind'];
export type Provider = RouteReply<'listProviders'>['providers'][number];
export type ProviderTest = RouteReply<'testProvider'>;
export type ProviderModel = ProviderTest['models'][number];

interface KindFacts {
  readonly title: string;
  readonly needsKey: boolean;
  /** True for a kind without an address of a vendor. */
  readonly needsUrl: boolean;
}

/** Kinds in the order of the list. */
export const KINDS: Readonly<Record<ProviderKind, KindFacts>> = {
  anthropic: { title: 'Anthropic', needsKey: true, needsUrl: false },
  openai: { title: 'OpenAI', needsKey: true, needsUrl: false },
  openrouter: { title: 'OpenRouter', needsKey: true, needsUrl: false },
  gemini: { title: 'Google Gemini', needsKey: true, needsUrl: false },
  'azure-openai': { title: 'Azure OpenAI', needsKey: true, needsUrl: true },
  ollama: { title: 'Ollama', needsKey: false, needsUrl: false },
  'openai-compatible': { title: 'Another server in OpenAI’s format', needsKey: false, needsUrl: true },
};

/** Beginnings of keys, the longest ones first. */
const PREFIXES: readonly (readonly [prefix: string, kind: ProviderKind])[] = [
  ['sk-ant-', 'anthropic'],
  ['sk-or-', 'openrouter'],
  ['sk-proj-', 'openai'],
  ['sk-svcacct-', 'openai'],
  ['AIza', 'gemini'],
];

/** Returns the kind that a key belongs to by its beginning; null if it does not say it. */
export const kindOfKey = (key: string): ProviderKind | null =>
  PREFIXES.find(([prefix]) => key.trim().startsWith(prefix))?.[1] ?? null;

/** Remedies of the problems of a test. */
const FIXES: Readonly<Record<NonNullable<ProviderTest['problem']>, string>> = {
  wrong_key: 'The provider does not know this key. Copy it again, whole, from the console of the vendor.',
  no_access: 'The key is right, and has no access or no credit. Add credit, or use another key.',
  busy: 'The provider is busy. The key may be right: try again soon.',
  unreachable: 'The provider cannot be reached. Check the address and the network of the gateway’s machine.',
  not_found: 'This is not that kind of server. Check the kind and the base URL, which often ends in /v1.',
  unexpected: 'The provider answered with something else. Check the kind and the base URL.',
};

const NAMES: Readonly<Record<NonNullable<ProviderTest['problem']>, string>> = {
  wrong_key: 'wrong key',
  no_access: 'no access or credit',
  busy: 'busy',
  unreachable: 'cannot be reached',
  not_found: 'not this kind of server',
  unexpected: 'unexpected answer',
};

/** Returns the result of a test in one line, and what to do about a failure. */
export const describeTest = ({ works, problem, status, models, durationMs }: ProviderTest) => {
  if (works || problem === null)
    return { line: `works · ${models.length} models · ${durationMs} ms`, fix: null };
  return { line: `${NAMES[problem]}${status === null ? '' : ` (${status})`}`, fix: FIXES[problem] };
};

/** Returns the model to begin with: the usual one of the kind if it is listed, else a likely one. */
export const usualModel = (models: readonly ProviderModel[], preferred: readonly string[]): string => {
  const listed = preferred.find((id) => models.some((model) => model.id === id));
  const family = preferred
    .map((id) => id.split(/[-.:]/).slice(0, 2).join('-'))
    .flatMap((start) => models.find(({ id }) => id.startsWith(start)) ?? [])[0];
  return listed ?? family?.id ?? models.find(({ price }) => price !== null)?.id ?? models[0]?.id ?? '';
};

const usd = (micro: number): string => `$${(micro / 1e6).toFixed(2)}`;

/** Returns the price and the size of a model, for its row. */
export const describeModel = ({ price, contextTokens, images }: ProviderModel): string =>
  [
    price
      ? `${usd(price.inputMicroUsdPerMtok)} in, ${usd(price.outputMicroUsdPerMtok)} out for a million tokens`
      : 'price unknown',
    contextTokens === null ? null : `${contextTokens.toLocaleString('en')} tokens`,
    images === null ? null : images ? 'images' : 'no images',
  ]
    .filter((part) => part !== null)
    .join(' · ');
