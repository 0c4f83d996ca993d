import {
  isPermitted,
  PERMISSIONS,
  ROLES,
  type Permission,
  type Principal,
} from '@antiphon/contracts/identity';
import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import { forbidden } from '@antiphon/kernel';

/** Rights that a key has, or would have. */
export type KeyRights = Pick<Principal, 'role' | 'scopes' | 'agentId' | 'expiresAt'>;

const exceeds = (what: string) =>
  forbidden('GATEWAY.KEY_EXCEEDS_CALLER', `the key would have more rights than the caller: ${what}`);

/**
 * Throws `GATEWAY.KEY_EXCEEDS_CALLER` if a key has a right that the caller lacks. Its role counts
 * too, because approvals compare roles, and so does its expiry.
 */
export const assertWithinRights = (caller: Principal, key: KeyRights): void => {
  if (ROLES.indexOf(key.role) > ROLES.indexOf(caller.role)) throw exceeds(`the role ${key.role}`);
  // The caller of the key does not matter to its permissions.
  const holder: Principal = { ...caller, ...key };
  const missing = PERMISSIONS.find((one) => isPermitted(holder, one) && !isPermitted(caller, one));
  if (missing !== undefined) throw exceeds(missing);
  if (caller.expiresAt !== null && (key.expiresAt === null || key.expiresAt > caller.expiresAt))
    throw exceeds(`it would be valid after ${new Date(caller.expiresAt).toISOString()}`);
};

/** Throws `GATEWAY.FORBIDDEN` unless the caller has a permission in the workspace `default`. */
export const assertAdministersInstallation = (caller: Principal, permission: Permission): void => {
  if (caller.workspace === DEFAULT_WORKSPACE && isPermitted(caller, permission)) return;
  throw forbidden(
    'GATEWAY.FORBIDDEN',
    `this needs the permission ${permission} in the workspace ${DEFAULT_WORKSPACE}`,
    { data: { permission, workspace: DEFAULT_WORKSPACE } },
  );
};
