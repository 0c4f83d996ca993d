import { z } from 'zod';

/** Name of a secret of a workspace, as tools and plug-ins name it. */
export const SecretName = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9_-]{0,46}[a-z0-9])?$/, 'must be 1 to 48 lower-case letters, digits, - or _')
  .describe('Name of the secret in its workspace.');
