import { z } from 'zod';

/** Roles of API keys, least privileged first. */
export const ROLES = ['viewer', 'member', 'operator', 'admin'] as const;
export const Role = z.enum(ROLES);
export type Role = z.infer<typeof Role>;

/** Rights that routes, socket methods and commands require. */
export const PERMISSIONS = [
  'status:read',
  'sessions:read',
  'sessions:write',
  'agents:read',
  'agents:write',
  'files:read',
  'files:write',
  'runs:read',
  'runs:write',
  'events:read',
  'memory:read',
  'memory:write',
  'budgets:read',
  'budgets:write',
  'plugins:read',
  'plugins:write',
  'tools:serve',
  'approvals:read',
  'approvals:answer',
  'operations:write',
  'keys:manage',
  'workspaces:manage',
  'credentials:manage',
] as const;
export const Permission = z.enum(PERMISSIONS);
export type Permission = z.infer<typeof Permission>;

/**
 * Rule of a route or a socket method: the permission that it requires, `authenticated` for any
 * principal, `open` for everyone.
 */
export type Access = Permission | 'authenticated' | 'open';

const READS = PERMISSIONS.filter((permission) => permission.endsWith(':read'));
const MEMBER: readonly Permission[] = [
  ...READS,
  'sessions:write',
  'agents:write',
  'files:write',
  'runs:write',
  'memory:write',
  // Each approval names the least privileged role that may decide it.
  'approvals:answer',
];
const OPERATOR: readonly Permission[] = [
  ...MEMBER,
  'budgets:write',
  'plugins:write',
  'tools:serve',
  'operations:write',
];

/** Permissions of each role. Each role has those of the roles below it. */
export const ROLE_PERMISSIONS: Readonly<Record<Role, readonly Permission[]>> = {
  viewer: READS,
  member: MEMBER,
  operator: OPERATOR,
  admin: PERMISSIONS,
};

/** Permissions that a credential of an agent never has, of any role. */
const NEVER_FOR_AGENTS: ReadonlySet<Permission> = new Set([
  'tools:serve',
  'approvals:answer',
  'operations:write',
  'keys:manage',
  'workspaces:manage',
  'credentials:manage',
]);

/** Authenticated origin of a request. Every request of a gateway has one. */
export interface Principal {
  /**
   * Name in facts, and scope of idempotency keys. `key/<keyId>` for an API key, `token` for the
   * configured token, `local` for a local program without a token.
   */
  readonly caller: string;
  readonly workspace: string;
  readonly role: Role;
  /** Limits the permissions of the role; null for all of them. */
  readonly scopes: readonly Permission[] | null;
  /** Id of the API key; null for the configured token and for local programs. */
  readonly keyId: string | null;
  /** Name of the API key; null for the configured token and for local programs. */
  readonly name: string | null;
  /** Agent whose credential this is; null for people and programs. */
  readonly agentId: string | null;
  /** Expiry of the credential, ms since 1970; null if it does not expire. */
  readonly expiresAt: number | null;
}

/** Returns true if a principal has a permission. */
export const isPermitted = ({ role, scopes, agentId }: Principal, permission: Permission): boolean =>
  ROLE_PERMISSIONS[role].includes(permission) &&
  (scopes === null || scopes.includes(permission)) &&
  !(agentId !== null && NEVER_FOR_AGENTS.has(permission));

/** A workspace id: short and lower-case, safe in a subject, a path and a lease name. */
export const WorkspaceId = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be 1 to 63 of a-z, 0-9 and -');
