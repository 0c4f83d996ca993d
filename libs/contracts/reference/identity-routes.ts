import { z } from 'zod';
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
import { ISSUED_KEY, KEY, WORKSPACE } from './examples.js';
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
    reply: { schema: IssuedWorkspace, status: 201 },
    example: {
      body: { id: WORKSPACE.id, name: WORKSPACE.name },
      reply: { ...WORKSPACE, key: { ...ISSUED_KEY, workspace: WORKSPACE.id } },
    },
    problems: {
      403: 'the caller is not of the workspace `default`',
      409: 'a workspace with this id exists',
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
