import { z } from 'zod';
import { WorkspaceId } from '../log/stored-event.js';
import { defineRequest } from '../messaging/index.js';
import { SecretName } from '../sandbox/secret-name.js';

export { SecretName };

/** A secret. Headers and URLs take printable ASCII; the message never repeats the value. */
export const SecretValue = z
  .string()
  .regex(/^[\x21-\x7e]{8,4096}$/, 'must be 8 to 4096 printable ASCII characters without spaces')
  .describe('The secret. No response, event or log line has it.');

/** A stored secret without its value. */
export const SecretView = z.object({
  name: z.string(),
  createdBy: z.string().describe('Caller that stored it.'),
  createdAt: z.iso.datetime(),
});
export type SecretView = z.output<typeof SecretView>;

const Caller = z.string().min(1).max(200);
const named = { workspace: WorkspaceId, name: SecretName };

/** Encrypts and stores a secret. It replaces the one before it. Errors: `SECRET.LIMIT`. */
export const setSecret = defineRequest({
  subject: 'cmd.agent.secret.set',
  request: z.strictObject({ ...named, secret: SecretValue, caller: Caller }),
  reply: SecretView,
  timeoutMs: 10_000,
});

export const listSecrets = defineRequest({
  subject: 'cmd.agent.secret.list',
  request: z.strictObject({ workspace: WorkspaceId }),
  reply: z.object({ secrets: z.array(SecretView) }),
  timeoutMs: 5_000,
});

export const removeSecret = defineRequest({
  subject: 'cmd.agent.secret.remove',
  request: z.strictObject({ ...named, caller: Caller }),
  reply: z.object({ removed: z.boolean() }),
  timeoutMs: 5_000,
});

/** Decrypts a secret for the sandbox service, which alone may ask. Null if there is none. */
export const readSecret = defineRequest({
  subject: 'cmd.agent.secret.read',
  request: z.strictObject(named),
  reply: z.object({ secret: z.string().nullable() }),
  timeoutMs: 5_000,
});
