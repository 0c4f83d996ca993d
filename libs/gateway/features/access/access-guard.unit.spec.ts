import { describe, expect, it, jest } from '@jest/globals';
import { PERMISSIONS, type Principal } from '@antiphon/contracts/identity';
import { HTTP_ROUTES, SOCKET_METHODS } from '@antiphon/contracts/reference';
import { accessOfRequest, authorize } from './access-guard.js';
import { LOCAL_OPERATOR } from './authenticator.js';
import { CredentialWatch } from './credential-watch.js';
import { NO_IDENTITIES } from './identities.port.js';

const viewer: Principal = { ...LOCAL_OPERATOR, caller: 'key/k', role: 'viewer', keyId: 'k' };
const accessOf = (method: string, url: string | undefined) =>
  accessOfRequest({ method, routeOptions: { url } } as Parameters<typeof accessOfRequest>[0]);

describe('authorize', () => {
  it('denies a request without a rule, also to an admin', () =>
    expect(() => authorize(LOCAL_OPERATOR, undefined)).toThrow('no rule allows'));

  it('denies every rule but open without a principal', () => {
    for (const access of [...PERMISSIONS, 'authenticated', undefined] as const)
      expect(() => authorize(null, access)).toThrow('a valid `Authorization: Bearer` token is needed');
    expect(() => authorize(null, 'open')).not.toThrow();
  });

  it('names the permission that a credential lacks', () =>
    expect(() => authorize(viewer, 'runs:write')).toThrow('lacks the permission runs:write'));
});

describe('the rules of the reference', () => {
  it('are found by the verb and path of a request, and not for others', () => {
    expect(accessOf('GET', '/api/v1/runs/:id')).toBe('runs:read');
    expect(accessOf('HEAD', '/api/v1/runs/:id')).toBe('runs:read');
    expect(accessOf('DELETE', '/api/v1/runs/:id')).toBeUndefined();
    expect(accessOf('GET', undefined)).toBeUndefined();
  });

  it('leave only probes and connect open, and give viewers no write', () => {
    const open = [...HTTP_ROUTES, ...SOCKET_METHODS].filter(({ access }) => access === 'open');
    expect(open.map((entry) => ('path' in entry ? entry.path : entry.name))).toEqual([
      '/healthz',
      '/readyz',
      'connect',
    ]);
    for (const { method, access } of HTTP_ROUTES)
      if (method !== 'get') expect(() => authorize(viewer, access)).toThrow('lacks the permission');
  });
});

describe('CredentialWatch', () => {
  it('notifies the holders of a key when it is revoked or expires, once', () => {
    jest.useFakeTimers();
    const clock = { at: 0, now: () => clock.at };
    let revoke: (keyId: string) => void = () => undefined;
    const onRevoked = (listener: typeof revoke) => ((revoke = listener), () => undefined);
    const watch = new CredentialWatch({ ...NO_IDENTITIES, onRevoked }, clock);
    const ended: string[] = [];
    const hold = (name: string, more: Partial<Principal>) =>
      watch.watch({ ...viewer, ...more }, (reason) => ended.push(`${name}: ${reason}`));
    hold('a', { keyId: 'one' });
    hold('b', { keyId: 'one' })();
    hold('c', { keyId: 'two', expiresAt: 1_000 });
    hold('d', { keyId: null });
    revoke('one');
    revoke('one');
    clock.at = 1_000;
    jest.advanceTimersByTime(2_000);
    expect(ended).toEqual(['a: the key was revoked', 'c: the key expired']);
    watch.onModuleDestroy();
    jest.useRealTimers();
  });
});
