import { z } from 'zod';
import { WorkspaceId } from '../log/stored-event.js';
import { defineRequest } from '../messaging/index.js';

const ProviderName = z.string().min(1).max(64).describe('Name of a configured provider.');

/** A provider's key. Providers' keys are printable ASCII; the message never repeats the value. */
export const ProviderSecret = z
  .string()
  .regex(/^[\x21-\x7e]{1,4096}$/, 'must be 1 to 4096 printable ASCII characters without spaces')
  .describe('The key of the provider. No response, event or log line has it.');

/** A stored credential without its secret. */
export const CredentialView = z.object({
  provider: ProviderName,
  masterKeyId: z.string().describe('Id of the master key that wraps its data key.'),
  createdBy: z.string().describe('Caller that stored it.'),
  createdAt: z.iso.datetime(),
});
export type CredentialView = z.output<typeof CredentialView>;

/** Encrypts and stores the key of a provider for a workspace. It replaces the key before it. */
export const setCredential = defineRequest({
  subject: 'cmd.agent.credential.set',
  request: z.strictObject({
    workspace: WorkspaceId,
    provider: ProviderName,
    secret: ProviderSecret,
    caller: z.string().min(1).max(200),
  }),
  reply: CredentialView,
  timeoutMs: 10_000,
});

export const listCredentials = defineRequest({
  subject: 'cmd.agent.credential.list',
  request: z.strictObject({ workspace: WorkspaceId }),
  reply: z.object({ credentials: z.array(CredentialView) }),
  timeoutMs: 5_000,
});

export const removeCredential = defineRequest({
  subject: 'cmd.agent.credential.remove',
  request: z.strictObject({ workspace: WorkspaceId, provider: ProviderName }),
  reply: z.object({ removed: z.boolean() }),
  timeoutMs: 5_000,
});

/** Wraps data keys of all workspaces by the newest master key, some at a time. */
export const rotateMasterKey = defineRequest({
  subject: 'cmd.agent.credential.rotate',
  request: z.strictObject({}),
  reply: z.object({
    masterKeyId: z.string().describe('Id of the newest master key.'),
    rewrapped: z.int().nonnegative().describe('Data keys that this request wrapped.'),
    remaining: z.int().nonnegative().describe('Data keys that a former master key still wraps.'),
  }),
  timeoutMs: 30_000,
});
