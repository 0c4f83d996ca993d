/** Price of a model: integer micro-USD per million tokens. */
export interface TokenPrice {
  readonly inputMicroUsdPerMtok: number;
  readonly outputMicroUsdPerMtok: number;
}

const MICRO_USD_TOKENS = 1_000_000n;

/** Returns the exact cost in millionths of a micro-USD; the product needs more than 53 bits. */
const exactCost = (price: TokenPrice, inputTokens: number, outputTokens: number): bigint =>
  BigInt(inputTokens) * BigInt(price.inputMicroUsdPerMtok) +
  BigInt(outputTokens) * BigInt(price.outputMicroUsdPerMtok);

/**
 * Returns the cost of one model call in integer micro-USD, rounded up once over the sum of input
 * and output. This is the only rounding of money: reservations, settlements and displays all use
 * it. A call within its bound therefore never costs more than its reservation (docs/adr/0041).
 */
export const costMicroUsd = (price: TokenPrice, inputTokens: number, outputTokens: number): number =>
  Number((exactCost(price, inputTokens, outputTokens) + MICRO_USD_TOKENS - 1n) / MICRO_USD_TOKENS);

/**
 * Returns how many output tokens `microUsd` pays for after `inputTokens`: the largest count whose
 * `costMicroUsd` still fits. Returns a negative number when the input alone costs too much, and
 * Infinity when output is free and the input fits.
 */
export const affordableOutputTokens = (price: TokenPrice, inputTokens: number, microUsd: number): number => {
  const left = BigInt(microUsd) * MICRO_USD_TOKENS - exactCost(price, inputTokens, 0);
  if (left < 0n) return -1;
  return price.outputMicroUsdPerMtok === 0 ? Infinity : Number(left / BigInt(price.outputMicroUsdPerMtok));
};
