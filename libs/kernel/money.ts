/** What a model costs: integer micro-USD per million tokens. */
export interface TokenPrice {
  readonly inputMicroUsdPerMtok: number;
  readonly outputMicroUsdPerMtok: number;
}

const MICRO_USD_TOKENS = 1_000_000n;

/** The exact cost in millionths of a micro-USD: a product of two safe integers needs more than 53 bits. */
const exactCost = (price: TokenPrice, inputTokens: number, outputTokens: number): bigint =>
  BigInt(inputTokens) * BigInt(price.inputMicroUsdPerMtok) +
  BigInt(outputTokens) * BigInt(price.outputMicroUsdPerMtok);

/**
 * Cost of one model call in integer micro-USD, rounded up once, over the sum of both sides.
 * This is the only rounding of money: who reserves, who settles and who shows a cost all use it,
 * so a call that stays within its bound never costs more than was reserved for it (docs/adr/0041).
 */
export const costMicroUsd = (price: TokenPrice, inputTokens: number, outputTokens: number): number =>
  Number((exactCost(price, inputTokens, outputTokens) + MICRO_USD_TOKENS - 1n) / MICRO_USD_TOKENS);

/**
 * How many output tokens `microUsd` pays for beside `inputTokens`: the largest count whose `costMicroUsd` still fits.
 * Negative when the input alone costs too much, Infinity when output is free and the input fits.
 */
export const affordableOutputTokens = (price: TokenPrice, inputTokens: number, microUsd: number): number => {
  const left = BigInt(microUsd) * MICRO_USD_TOKENS - exactCost(price, inputTokens, 0);
  if (left < 0n) return -1;
  return price.outputMicroUsdPerMtok === 0 ? Infinity : Number(left / BigInt(price.outputMicroUsdPerMtok));
};
