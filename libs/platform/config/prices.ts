import type { AntiphonConfig, PriceConfig, ResolvedFile } from './antiphon-config.js';
import { PROVIDER_FACTS, PROVIDER_KINDS } from './provider-kinds.js';

/** Prices of the kinds of providers. Prices of the file have precedence. */
export const DEFAULT_PRICES: ResolvedFile['prices'] = PROVIDER_KINDS.flatMap((provider) =>
  PROVIDER_FACTS[provider].prices.map(([model, inputUsd, outputUsd]) => ({
    provider,
    model,
    input_per_mtok: inputUsd * 1e6,
    output_per_mtok: outputUsd * 1e6,
  })),
);

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

/**
 * Returns the price of a model by the name of its provider, or null. Prices of the file come first.
 */
export const findPrice = (
  config: Pick<AntiphonConfig, 'prices' | 'providers'>,
  providerName: string,
  model: string,
): PriceConfig | null => {
  const kind = config.providers.find(({ name }) => name === providerName)?.kind;
  const found = config.prices.find(
    (price) =>
      (price.provider === '*' || price.provider === providerName || price.provider === kind) &&
      matchesPattern(price.model, model),
  );
  return found ?? null;
};
