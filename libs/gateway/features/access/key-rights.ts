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

/** Returns a right of a key that the caller lacks, undefined for none. */
const findExcess = (caller: Principal, key: KeyRights): string | undefined => {
  // Approvals compare roles, so the role counts too.
  if (ROLES.indexOf(key.role) > ROLES.indexOf(caller.role)) return `the role ${key.role}`;
  // The caller of the key does not matter to its permissions.
  const holder: Principal = { ...caller, ...key };
  return PERMISSIONS.find((one) => isPermitted(holder, one) && !isPermitted(caller, one));
};

/**
 * Throws `GATEWAY.KEY_EXCEEDS_CALLER` if a key would have a right that the caller lacks, or be
 * valid for longer.
 */
export const assertWithinRights = (caller: Principal, key: KeyRights): void => {
  const excess = findExcess(caller, key);
  if (excess !== undefined) throw exceeds(excess);
  if (caller.expiresAt !== null && (key.expiresAt === null || key.expiresAt > caller.expiresAt))
    throw exceeds(`it would be valid after ${new Date(caller.expiresAt).toISOString()}`);
};

/**
 * Throws `GATEWAY.KEY_EXCEEDS_CALLER` if the caller may not end a key: it has a right that the
 * caller lacks. Otherwise a key that only manages keys could lock out every admin.
 */
export const assertMayRevoke = (caller: Principal, key: KeyRights): void => {
  const excess = findExcess(caller, key);
  if (excess === undefined) return;
  const message = `this key has more rights than the caller: ${excess}. What to do: use a key with them`;
  throw forbidden('GATEWAY.KEY_EXCEEDS_CALLER', message);
};

/** Returns true for an operator of the installation, who sees what concerns every workspace. */
export const isInstallationOperator = (principal: Principal): boolean =>
  principal.workspace === DEFAULT_WORKSPACE && isPermitted(principal, 'operations:write');

/** Throws `GATEWAY.FORBIDDEN` unless the caller has a permission in the workspace `default`. */
export const assertAdministersInstallation = (caller: Principal, permission: Permission): void => {
  if (caller.workspace === DEFAULT_WORKSPACE && isPermitted(caller, permission)) return;
  throw forbidden(
    'GATEWAY.FORBIDDEN',
    `this needs the permission ${permission} in the workspace ${DEFAULT_WORKSPACE}`,
    { data: { permission, workspace: DEFAULT_WORKSPACE } },
  );
};
