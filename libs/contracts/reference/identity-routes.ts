import { z } from 'zod';
import {
  CredentialView,
  listCredentials,
  listSecrets,
  ProviderSecret,
  removeCredential,
  removeSecret,
  SecretName,
  SecretValue,
  SecretView,
  rotateMasterKey,
} from '../agent/index.js';
import { PageQuery } from '../gateway/index.js';
import {
  CreateKeyBody,
  CreateWorkspaceBody,
  IssuedKey,
  IssuedWorkspace,
  KeyId,
  KeyView,
  RotateKeyBody,
  WorkspaceView,
} from '../keys/index.js';
import { CREDENTIAL, ISSUED_KEY, KEY, WORKSPACE } from './examples.js';
import { defineRoute } from './http-route.js';

const ByKeyId = z.object({ id: KeyId.describe('Id of the key, without its secret.') });
const NO_KEY = { 404: 'there is no key with this id in the workspace' };
const EXCEEDS = 'the key would have more rights than the caller';
const NextCursor = z.string().nullable();

/** Routes of `/api/v1/keys`. */
export const KEY_ROUTES = {
  createKey: defineRoute({
    method: 'post',
    path: '/api/v1/keys',
    tag: 'Keys',
    summary: 'Create an API key',
    description:
      'Creates a key in the workspace of the caller. The response is the only place that has its secret. ' +
      'A key cannot have more rights than the caller, and cannot expire later than the caller’s key.',
    access: 'keys:manage',
    body: CreateKeyBody,
    idempotent: true,
    reply: { schema: IssuedKey, status: 201 },
    example: { body: { name: 'ci', role: 'member', scopes: ['sessions:write'] }, reply: ISSUED_KEY },
    problems: {
      403: EXCEEDS,
      404: 'there is no such workspace',
      409: 'the `Idempotency-Key` was used for another key',
    },
  }),
  listKeys: defineRoute({
    method: 'get',
    path: '/api/v1/keys',
    tag: 'Keys',
    summary: 'List API keys',
    description: 'Returns the keys of the caller’s workspace, oldest first, without secrets.',
    access: 'keys:manage',
    query: PageQuery,
    reply: { schema: z.object({ keys: z.array(KeyView), nextCursor: NextCursor }) },
    example: { reply: { keys: [KEY], nextCursor: null } },
  }),
  revokeKey: defineRoute({
    method: 'delete',
    path: '/api/v1/keys/{id}',
    tag: 'Keys',
    summary: 'Revoke an API key',
    description:
      'Revokes a key for good. Every gateway refuses it within a second and closes its sockets with 4403. ' +
      'A repeated request changes nothing.',
    access: 'keys:manage',
    params: ByKeyId,
    reply: { schema: KeyView },
    example: { params: { id: KEY.id }, reply: { ...KEY, status: 'revoked' } },
    problems: NO_KEY,
  }),
  rotateKey: defineRoute({
    method: 'post',
    path: '/api/v1/keys/{id}/rotate',
    tag: 'Keys',
    summary: 'Rotate the secret of an API key',
    description:
      'Gives a key a new secret, which only this response has. The secret before it ends after `overlapSeconds`. ' +
      'Id, role and scopes stay the same.',
    access: 'keys:manage',
    params: ByKeyId,
    body: RotateKeyBody,
    reply: { schema: IssuedKey },
    example: { params: { id: KEY.id }, body: { overlapSeconds: 3_600 }, reply: ISSUED_KEY },
    problems: { ...NO_KEY, 403: EXCEEDS, 422: 'the key is revoked' },
  }),
} as const;

/** Routes of `/api/v1/workspaces`. */
export const WORKSPACE_ROUTES = {
  createWorkspace: defineRoute({
    method: 'post',
    path: '/api/v1/workspaces',
    tag: 'Workspaces',
    summary: 'Create a workspace',
    description:
      'Creates a workspace and its first admin key, whose secret only this response has. ' +
      'It needs `workspaces:manage` in the workspace `default`.',
    access: 'workspaces:manage',
    body: CreateWorkspaceBody,
    idempotent: true,
    reply: { schema: IssuedWorkspace, status: 201 },
    example: {
      body: { id: WORKSPACE.id, name: WORKSPACE.name },
      reply: { ...WORKSPACE, key: { ...ISSUED_KEY, workspace: WORKSPACE.id } },
    },
    problems: {
      403: 'the caller is not of the workspace `default`',
      409: 'a workspace with this id exists, or the `Idempotency-Key` was used for another one',
    },
  }),
  listWorkspaces: defineRoute({
    method: 'get',
    path: '/api/v1/workspaces',
    tag: 'Workspaces',
    summary: 'List workspaces',
    description: 'Returns all workspaces to a caller of `default`, and to any other caller its own one.',
    access: 'workspaces:manage',
    query: PageQuery,
    reply: { schema: z.object({ workspaces: z.array(WorkspaceView), nextCursor: NextCursor }) },
    example: { reply: { workspaces: [WORKSPACE], nextCursor: null } },
  }),
} as const;

const ByProvider = z.object({
  provider: z.string().min(1).max(64).describe('Name of a configured provider.'),
});

/** Routes of `/api/v1/credentials`. */
export const CREDENTIAL_ROUTES = {
  listCredentials: defineRoute({
    method: 'get',
    path: '/api/v1/credentials',
    tag: 'Credentials',
    summary: 'List stored credentials',
    description: 'Returns the providers of the caller’s workspace that have a stored key, without the keys.',
    access: 'credentials:manage',
    reply: { schema: listCredentials.reply },
    example: { reply: { credentials: [CREDENTIAL] } },
  }),
  setCredential: defineRoute({
    method: 'put',
    path: '/api/v1/credentials/{provider}',
    tag: 'Credentials',
    summary: 'Store the key of a provider',
    description:
      'Encrypts and stores a key for the caller’s workspace. It replaces the key before it and is used within a second. ' +
      'A stored key wins over the environment variable of the provider.',
    access: 'credentials:manage',
    params: ByProvider,
    body: z.strictObject({ secret: ProviderSecret }),
    reply: { schema: CredentialView },
    example: {
      params: { provider: 'anthropic' },
      body: { secret: 'the-key-of-the-provider' },
      reply: CREDENTIAL,
    },
    problems: {
      404: 'no provider with this name is configured',
      409: '`CREDENTIAL.PROVIDER_CONNECTED`: its key changes with the provider',
      422: 'the agent service has no master key',
    },
  }),
  removeCredential: defineRoute({
    method: 'delete',
    path: '/api/v1/credentials/{provider}',
    tag: 'Credentials',
    summary: 'Remove the stored key of a provider',
    description: 'Removes a stored key. `removed` is false if there was none.',
    access: 'credentials:manage',
    params: ByProvider,
    reply: { schema: removeCredential.reply },
    example: { params: { provider: 'anthropic' }, reply: { removed: true } },
    problems: { 409: '`CREDENTIAL.PROVIDER_CONNECTED`: its key is removed with the provider' },
  }),
  rotateMasterKey: defineRoute({
    method: 'post',
    path: '/api/v1/credentials/rotate-master',
    tag: 'Credentials',
    summary: 'Wrap data keys by the newest master key',
    description:
      'Wraps up to 100 data keys by the newest master key of the agent service. Repeat it until `remaining` is 0. ' +
      'It needs `credentials:manage` in the workspace `default`.',
    access: 'credentials:manage',
    reply: { schema: rotateMasterKey.reply },
    example: { reply: { masterKeyId: CREDENTIAL.masterKeyId, rewrapped: 3, remaining: 0 } },
    problems: { 403: 'the caller is not of the workspace `default`' },
  }),
} as const;

const SECRET = {
  ...{ name: 'github', createdBy: 'key/a2b3c4d5e6f7g2h3', createdAt: '2026-11-28T10:16:00.000Z' },
} as const;
const BySecret = z.object({ name: SecretName });

/** Routes of `/api/v1/secrets`. */
export const SECRET_ROUTES = {
  listSecrets: defineRoute({
    method: 'get',
    path: '/api/v1/secrets',
    tag: 'Credentials',
    summary: 'List secrets',
    description:
      'Returns the secrets that tools and plug-ins of the caller’s workspace may use, without their values.',
    access: 'credentials:manage',
    reply: { schema: listSecrets.reply },
    example: { reply: { secrets: [SECRET] } },
  }),
  setSecret: defineRoute({
    method: 'put',
    path: '/api/v1/secrets/{name}',
    tag: 'Credentials',
    summary: 'Store a secret',
    description:
      'Encrypts and stores a secret for the caller’s workspace. It replaces the one before it, and is used within a second. ' +
      'The host inserts it into requests of tools that name it. It is in no event, log or response.',
    access: 'credentials:manage',
    params: BySecret,
    body: z.strictObject({ secret: SecretValue }),
    reply: { schema: SecretView },
    example: { params: { name: 'github' }, body: { secret: 'the-value-of-the-secret' }, reply: SECRET },
    problems: { 422: '`SECRET.LIMIT`, or the agent service has no master key' },
  }),
  removeSecret: defineRoute({
    method: 'delete',
    path: '/api/v1/secrets/{name}',
    tag: 'Credentials',
    summary: 'Remove a secret',
    description:
      'Removes a secret. Tools that name it fail from then on. `removed` is false if there was none.',
    access: 'credentials:manage',
    params: BySecret,
    reply: { schema: removeSecret.reply },
    example: { params: { name: 'github' }, reply: { removed: true } },
  }),
} as const;
