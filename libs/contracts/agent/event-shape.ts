import { z } from 'zod';

/** The contract of an event in its first form. */
export const event = <T extends string, S extends z.ZodRawShape>(type: T, data: S) =>
  z.object({ type: z.literal(type), schemaVersion: z.literal(1), data: z.object(data) });
