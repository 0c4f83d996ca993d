import { describe, expect, it } from '@jest/globals';
import { isPermitted, PERMISSIONS, ROLE_PERMISSIONS, ROLES, type Principal, type Role } from './index.js';

const principal = (role: Role, more: Partial<Principal> = {}): Principal => ({
  caller: 'key/k',
  workspace: 'default',
  role,
  scopes: null,
  keyId: 'k',
  name: 'spec',
  agentId: null,
  expiresAt: null,
  ...more,
});

describe('isPermitted', () => {
  it('gives each role the permissions of the roles below it, and admin all', () => {
    for (const [index, role] of ROLES.entries()) {
      const below = index === 0 ? [] : ROLE_PERMISSIONS[ROLES[index - 1] ?? 'viewer'];
      expect(ROLE_PERMISSIONS[role]).toEqual(expect.arrayContaining([...below]));
    }
    expect(PERMISSIONS.filter((one) => isPermitted(principal('admin'), one))).toEqual([...PERMISSIONS]);
  });

  it('refuses a viewer every write', () => {
    const granted = PERMISSIONS.filter((one) => isPermitted(principal('viewer'), one));
    expect(granted.every((one) => one.endsWith(':read'))).toBe(true);
  });

  it('limits a key to its scopes, which never extend its role', () => {
    const scopes = ['sessions:read', 'keys:manage'] as const;
    const granted = PERMISSIONS.filter((one) => isPermitted(principal('member', { scopes }), one));
    expect(granted).toEqual(['sessions:read']);
  });

  it('refuses a credential of an agent approvals and administration, of any role', () => {
    const agent = principal('admin', { agentId: 'main' });
    const refused = PERMISSIONS.filter((one) => !isPermitted(agent, one));
    expect(refused).toEqual([
      'tools:serve',
      'approvals:answer',
      'operations:write',
      'keys:manage',
      'workspaces:manage',
      'credentials:manage',
    ]);
  });
});
