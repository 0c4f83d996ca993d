import type { AntiphonConfig, PriceConfig, ResolvedFile } from './antiphon-config.js';
import type { TokenPrice } from '@antiphon/kernel';
import { PROVIDER_FACTS, PROVIDER_KINDS } from './provider-kinds.js';
import type { ProviderKind } from './provider-kinds.js';

const NO_CACHE_PRICES = {
  cache_read_per_mtok: null,
  cache_write_per_mtok: null,
  cache_write_1h_per_mtok: null,
};

/** Prices of the kinds of providers. Prices of the file have precedence. */
export const DEFAULT_PRICES: ResolvedFile['prices'] = PROVIDER_KINDS.flatMap((provider) =>
  PROVIDER_FACTS[provider].prices.map(([model, inputUsd, outputUsd]) => ({
    provider,
    model,
    input_per_mtok: inputUsd * 1e6,
    output_per_mtok: outputUsd * 1e6,
    ...NO_CACHE_PRICES,
  })),
);

/** Prices of cached input, in thousandths of the price of other input. */
interface CacheRates {
  readonly read: number;
  readonly write: number;
  readonly write1h: number;
}

const reading = (read: number): CacheRates => ({ read, write: 1_000, write1h: 1_000 });
const NO_DISCOUNT = reading(1_000);
const ANTHROPIC: CacheRates = { read: 100, write: 1_250, write1h: 2_000 };

/** Rates by model family. OpenRouter puts the vendor and a `/` before the name. */
const CACHE_RATES: readonly (readonly [family: RegExp, CacheRates])[] = [
  [/^claude/, ANTHROPIC],
  [/^gpt-5/, reading(100)],
  [/^(?:gpt-4o|o1|o3-mini)/, reading(500)],
  [/^(?:gpt-4\.1|o3|o4)/, reading(250)],
  [/^deepseek/, reading(100)],
];

/** Returns the vendor's rates. Unknown models get no discount, so that no charge is too low. */
const cacheRatesOf = (kind: ProviderKind | undefined, model: string): CacheRates => {
  if (kind === 'anthropic' || (kind === 'bedrock' && model.includes('claude'))) return ANTHROPIC;
  const name = model.slice(model.lastIndexOf('/') + 1);
  return CACHE_RATES.find(([family]) => family.test(name))?.[1] ?? NO_DISCOUNT;
};

/** Returns a price without the cached prices that equal the price of other input. */
const withCachePrices = (found: PriceConfig, rates: CacheRates): TokenPrice => {
  const { inputMicroUsdPerMtok: input, outputMicroUsdPerMtok } = found;
  const priceAt = (own: number | null, rate: number): number => own ?? Math.ceil((input * rate) / 1_000);
  const read = priceAt(found.cacheReadMicroUsdPerMtok, rates.read);
  const write = priceAt(found.cacheWriteMicroUsdPerMtok, rates.write);
  const write1h = priceAt(found.cacheWrite1hMicroUsdPerMtok, rates.write1h);
  return {
    inputMicroUsdPerMtok: input,
    outputMicroUsdPerMtok,
    ...(read === input ? {} : { cacheReadMicroUsdPerMtok: read }),
    ...(write === input ? {} : { cacheWriteMicroUsdPerMtok: write }),
    ...(write1h === input ? {} : { cacheWrite1hMicroUsdPerMtok: write1h }),
  };
};

/**
 * Returns true if `text` matches `pattern`, in which `*` stands for any characters. No
 * backtracking.
 */
export const matchesPattern = (pattern: string, text: string): boolean => {
  const parts = pattern.split('*');
  const first = parts[0] ?? '';
  const last = parts.at(-1) ?? '';
  if (parts.length === 1) return text === pattern;
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last))
    return false;
  let from = first.length;
  for (const part of parts.slice(1, -1)) {
    const at = text.indexOf(part, from);
    if (at === -1) return false;
    from = at + part.length;
  }
  return from <= text.length - last.length;
};

const kindNamed = (name: string | undefined): ProviderKind | undefined =>
  PROVIDER_KINDS.find((kind) => kind === name);

/**
 * Returns the price of a model by the name of its provider, or null. `connectedKind` is the kind of
 * a provider that the configuration does not name. Prices of the file come first.
 * Prices of cached input that it does not set follow from the vendor's rates.
 */
export const findPrice = (
  config: Pick<AntiphonConfig, 'prices' | 'providers'>,
  providerName: string,
  model: string,
  connectedKind?: string,
): TokenPrice | null => {
  const configured = config.providers.find(({ name }) => name === providerName);
  const kind = configured?.kind ?? kindNamed(connectedKind);
  const found = config.prices.find(
    (price) =>
      (price.provider === '*' || price.provider === providerName || price.provider === kind) &&
      matchesPattern(price.model, model),
  );
  return found ? withCachePrices(found, cacheRatesOf(kind, model)) : null;
};
