import { z } from 'zod';
import { Permission, Role, WorkspaceId } from '../identity/index.js';

/** Id of an API key: 80 random bits in base 32. It is public and finds the key's row. */
export const KeyId = z.string().regex(/^[a-z2-7]{16}$/, 'must be the 16 characters after `ak_`');

/** Longest time for which a rotated secret may stay valid: seven days, in seconds. */
export const MAX_OVERLAP_S = 604_800;

/** Prefixes of the names of keys that the dashboard signs in with. No other key may have them. */
export const SESSION_KEY_NAMES = { session: 'dashboard-session/', link: 'dashboard-link/' } as const;
const isReserved = (name: string): boolean =>
  Object.values(SESSION_KEY_NAMES).some((prefix) => name.toLowerCase().startsWith(prefix));

const Name = z
  .string()
  .trim()
  .min(1)
  .max(100)
  .regex(/^[^\p{Cc}\p{Cf}]*$/u, 'must not have control or formatting characters')
  .refine((name) => !isReserved(name), 'must not begin as the name of a dashboard’s session');

const Future = z.iso
  .datetime({ offset: true })
  .transform((time) => new Date(time).toISOString())
  .describe('Time from which the key is refused, ISO 8601.');

/** Body of `POST /api/v1/keys`. */
export const CreateKeyBody = z.strictObject({
  name: Name.describe('Purpose of the key, for lists.'),
  role: Role.default('member').describe('Role of the key; at most the role of the caller.'),
  scopes: z
    .array(Permission)
    .min(1)
    .transform((scopes) => [...new Set(scopes)].sort())
    .optional()
    .describe('Permissions that limit the role. Default: all permissions of the role.'),
  agentId: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe('Agent whose credential this is. It never answers approvals and never administers.'),
  expiresAt: Future.optional(),
  workspace: WorkspaceId.optional().describe(
    'Another workspace. It needs `workspaces:manage` in the workspace `default`.',
  ),
});
export type CreateKeyBody = z.output<typeof CreateKeyBody>;

/** Body of `POST /api/v1/keys/{id}/rotate`. */
export const RotateKeyBody = z.preprocess(
  (body) => body ?? {},
  z.strictObject({
    overlapSeconds: z
      .int()
      .min(0)
      .max(MAX_OVERLAP_S)
      .default(0)
      .describe('Time for which the secret before it stays valid, seconds. 0 ends it at once.'),
  }),
);

/** An API key without its secret. */
export const KeyView = z.object({
  id: KeyId.describe('Id of the key, which begins its text after `ak_`.'),
  workspace: WorkspaceId,
  name: z.string(),
  role: Role,
  scopes: z.array(Permission).nullable().describe('Permissions that limit the role; null: no limit.'),
  agentId: z.string().nullable(),
  status: z.enum(['active', 'expired', 'revoked']),
  createdBy: z.string().describe('Caller that created the key.'),
  createdAt: z.iso.datetime(),
  expiresAt: z.iso.datetime().nullable(),
  previousValidUntil: z.iso
    .datetime()
    .nullable()
    .describe('Time until which the secret before the last rotation is valid.'),
});
export type KeyView = z.output<typeof KeyView>;

/** Result of a creation or a rotation. Only this response has the secret. */
export const IssuedKey = KeyView.extend({
  token: z
    .string()
    .nullable()
    .describe('The key as clients send it, shown once; null for a repeated request.'),
});
export type IssuedKey = z.output<typeof IssuedKey>;

/** Body of `POST /api/v1/workspaces`. */
export const CreateWorkspaceBody = z.strictObject({ id: WorkspaceId, name: Name.optional() });

export const WorkspaceView = z.object({
  id: WorkspaceId,
  name: z.string(),
  createdBy: z.string(),
  createdAt: z.iso.datetime(),
});
export type WorkspaceView = z.output<typeof WorkspaceView>;

/** Result of a creation: the workspace and its first admin key. */
export const IssuedWorkspace = WorkspaceView.extend({ key: IssuedKey });
export type IssuedWorkspace = z.output<typeof IssuedWorkspace>;
