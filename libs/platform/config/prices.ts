import type { AntiphonConfig, PriceConfig } from './antiphon-config.js';

const perMtok = (provider: string, model: string, inputUsd: number, outputUsd: number): PriceConfig => ({
  provider,
  model,
  inputMicroUsdPerMtok: inputUsd * 1e6,
  outputMicroUsdPerMtok: outputUsd * 1e6,
});

/**
 * Known prices in US dollars per million tokens, behind those of the file. `provider` is a provider's name or kind,
 * `model` a name in which `*` stands for any characters. A model that is not listed has no price: under a money
 * limit it is refused. (gpt-4o-mini and the first gpt-4o-2024-05-13 cost otherwise, hence no `gpt-4o*`.)
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

/** Whether `text` has the form of `pattern`, in which `*` stands for any characters; no backtracking. */
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

/** The price of a model of a configured provider (by its name), or null: unknown. The file's prices go first. */
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
