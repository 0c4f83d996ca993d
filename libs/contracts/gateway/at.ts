import { z } from 'zod';

/** Position of the log, in a query. */
export const Position = z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

/** Query field of every read that can answer for the past. */
export const At = Position.optional().describe(
  'Position of the log as of which to answer. The response then has `position` and `head`.',
);

/** Query of every read of one thing that can answer for the past. */
export const AtQuery = z.strictObject({ at: At });
