import { z } from 'zod';

/** Field of a request for a read that can answer for the past. */
export const asOfRequest = {
  /** Position of the log as of which to answer. Absent: now. */
  at: z.int().nonnegative().optional(),
};

/** Fields of a response as of a position; absent in a response for now. */
export const asOfReply = {
  position: z
    .int()
    .nonnegative()
    .optional()
    .describe('Position of the log as of which this is true; with `at` only.'),
  head: z.int().nonnegative().optional().describe('Position of the newest event of the log; with `at` only.'),
};
