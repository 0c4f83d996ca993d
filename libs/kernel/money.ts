/**
 * Price of a model: integer micro-USD per million tokens. Without a price of its own, cached input
 * costs as much as other input.
 */
export interface TokenPrice {
  readonly inputMicroUsdPerMtok: number;
  readonly outputMicroUsdPerMtok: number;
  readonly cacheReadMicroUsdPerMtok?: number | undefined;
  readonly cacheWriteMicroUsdPerMtok?: number | undefined;
  readonly cacheWrite1hMicroUsdPerMtok?: number | undefined;
}

/** Parts of the input that a prompt cache read or wrote. Absent: none. */
export interface CacheTokens {
  readonly cacheReadTokens?: number | undefined;
  /** Tokens written, for any time. */
  readonly cacheWriteTokens?: number | undefined;
  /** Part of the tokens written that the cache keeps for an hour. */
  readonly cacheWrite1hTokens?: number | undefined;
}

/** Tokens of one call. The input is whole: it includes its cached parts. */
export interface TokenUsage extends CacheTokens {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

const MICRO_USD_TOKENS = 1_000_000n;

const product = (tokens: number, price: number): bigint => BigInt(tokens) * BigInt(price);

/** Returns the exact cost in millionths of a micro-USD; the product needs more than 53 bits. */
const exactCost = (price: TokenPrice, usage: TokenUsage): bigint => {
  const { inputMicroUsdPerMtok: input, outputMicroUsdPerMtok: output } = price;
  const { cacheReadTokens: read = 0, cacheWriteTokens: written = 0, cacheWrite1hTokens: hour = 0 } = usage;
  return (
    product(usage.inputTokens - read - written, input) +
    product(read, price.cacheReadMicroUsdPerMtok ?? input) +
    product(written - hour, price.cacheWriteMicroUsdPerMtok ?? input) +
    product(hour, price.cacheWrite1hMicroUsdPerMtok ?? input) +
    product(usage.outputTokens, output)
  );
};

const roundUp = (exact: bigint): number => Number((exact + MICRO_USD_TOKENS - 1n) / MICRO_USD_TOKENS);
const roundToNearest = (exact: bigint): number => Number((exact + MICRO_USD_TOKENS / 2n) / MICRO_USD_TOKENS);

/** Returns the cached parts of a usage, without those that are 0. */
export const cacheTokensOf = (usage: CacheTokens): CacheTokens => ({
  ...(usage.cacheReadTokens ? { cacheReadTokens: usage.cacheReadTokens } : {}),
  ...(usage.cacheWriteTokens ? { cacheWriteTokens: usage.cacheWriteTokens } : {}),
  ...(usage.cacheWrite1hTokens ? { cacheWrite1hTokens: usage.cacheWrite1hTokens } : {}),
});

/**
 * Returns the cost of one model call in integer micro-USD, rounded once over the sum of its parts.
 * It is rounded up, or to the nearest with cached input, whose prices are fractions
 * (docs/adr/0191). A call within its bound never costs more than its reservation.
 */
export const costMicroUsd = (price: TokenPrice, usage: TokenUsage): number => {
  const exact = exactCost(price, usage);
  return usage.cacheReadTokens || usage.cacheWriteTokens ? roundToNearest(exact) : roundUp(exact);
};

/** Returns the price with each input token at the dearest price that input can have. */
const atDearestInput = (price: TokenPrice): TokenPrice => ({
  inputMicroUsdPerMtok: Math.max(
    price.inputMicroUsdPerMtok,
    price.cacheReadMicroUsdPerMtok ?? 0,
    price.cacheWriteMicroUsdPerMtok ?? 0,
    price.cacheWrite1hMicroUsdPerMtok ?? 0,
  ),
  outputMicroUsdPerMtok: price.outputMicroUsdPerMtok,
});

/** Returns the maximum cost of a call of this size, however a cache reads or writes its input. */
export const boundMicroUsd = (price: TokenPrice, inputTokens: number, outputTokens: number): number =>
  costMicroUsd(atDearestInput(price), { inputTokens, outputTokens });

/**
 * Returns how many output tokens `microUsd` pays for after `inputTokens`: the largest count whose
 * `boundMicroUsd` still fits. Returns a negative number when the input alone costs too much, and
 * Infinity when output is free and the input fits.
 */
export const affordableOutputTokens = (price: TokenPrice, inputTokens: number, microUsd: number): number => {
  const input = exactCost(atDearestInput(price), { inputTokens, outputTokens: 0 });
  const left = BigInt(microUsd) * MICRO_USD_TOKENS - input;
  if (left < 0n) return -1;
  return price.outputMicroUsdPerMtok === 0 ? Infinity : Number(left / BigInt(price.outputMicroUsdPerMtok));
};
