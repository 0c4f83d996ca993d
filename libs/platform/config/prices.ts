import type { AntiphonConfig, PriceConfig } from './antiphon-config.js';

const perMtok = (provider: string, model: string, inputUsd: number, outputUsd: number): PriceConfig => ({
  provider,
  model,
  inputMicroUsdPerMtok: inputUsd * 1e6,
  outputMicroUsdPerMtok: outputUsd * 1e6,
});

/**
 * Default prices in US dollars per million tokens. Prices of the file have precedence. `provider`
 * is a name or a kind, and `*` in `model` stands for any characters. A model without a price is
 * refused under a money limit. There is no `gpt-4o*`: gpt-4o-mini and gpt-4o-2024-05-13 have other
 * prices.
 */
export const DEFAULT_PRICES: readonly PriceConfig[] = [
  perMtok('anthropic', 'claude-sonnet-*', 3, 15),
  perMtok('anthropic', 'claude-3-*-sonnet-*', 3, 15),
  perMtok('openai', 'gpt-4o', 2.5, 10),
  perMtok('openai', 'gpt-4o-2024-08-06', 2.5, 10),
  perMtok('openai', 'gpt-4o-2024-11-20', 2.5, 10),
  perMtok('openrouter', 'anthropic/claude-sonnet-*', 3, 15),
  perMtok('openrouter', 'openai/gpt-4o', 2.5, 10),
  perMtok('scripted', '*', 0, 0),
  perMtok('ollama', '*', 0, 0),
];

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
