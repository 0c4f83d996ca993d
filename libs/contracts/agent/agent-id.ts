import { z } from 'zod';

export const AgentId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/)
  .describe('Id of an agent.');
