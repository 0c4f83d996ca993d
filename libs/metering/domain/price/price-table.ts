import type { Price } from '@antiphon/contracts/metering';

/** One entry of `[[prices]]`. */
export interface PriceEntry extends Price {
  readonly provider: string;
  readonly model: string;
}

/** The price of a provider's model, null when nobody has set one. */
export type PriceOf = (provider: string, model: string) => Price | null;

const dearest = (a: Price, b: Price): Price => ({
  inputMicroUsdPerMtok: Math.max(a.inputMicroUsdPerMtok, b.inputMicroUsdPerMtok),
  outputMicroUsdPerMtok: Math.max(a.outputMicroUsdPerMtok, b.outputMicroUsdPerMtok),
});

/**
 * Looks prices up by the exact names of provider and model: a guess by prefix could be too cheap.
 * Where two entries name the same model, the dearer figure of each side counts, so that nothing is under-reserved.
 */
export const priceTable = (entries: readonly PriceEntry[]): PriceOf => {
  const byName = new Map<string, Price>();
  for (const { provider, model, inputMicroUsdPerMtok, outputMicroUsdPerMtok } of entries) {
    const name = JSON.stringify([provider, model]);
    const price = { inputMicroUsdPerMtok, outputMicroUsdPerMtok };
    const known = byName.get(name);
    byName.set(name, known ? dearest(known, price) : price);
  }
  return (provider, model) => byName.get(JSON.stringify([provider, model])) ?? null;
};
