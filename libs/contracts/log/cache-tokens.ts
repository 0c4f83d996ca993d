import { z } from 'zod';

/** Fields of a usage with the parts of its input that a prompt cache read or wrote. Absent: none. */
export const CACHE_TOKENS = {
  cacheReadTokens: z.int().nonnegative().optional(),
  /** Tokens written, for any time. */
  cacheWriteTokens: z.int().nonnegative().optional(),
  /** Part of the tokens written that the cache keeps for an hour. */
  cacheWrite1hTokens: z.int().nonnegative().optional(),
};
