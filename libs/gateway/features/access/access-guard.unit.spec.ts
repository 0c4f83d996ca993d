import { describe, expect, it } from '@jest/globals';
import { PERMISSIONS, type Principal } from '@antiphon/contracts/identity';
import { HTTP_ROUTES, SOCKET_METHODS } from '@antiphon/contracts/reference';
import type { HttpRoute, SocketMethod } from '@antiphon/contracts/reference';
import { authorize, requireFeature, routeOf } from './access-guard.js';
import { LOCAL_OPERATOR } from './authenticator.js';

const viewer: Principal = { ...LOCAL_OPERATOR, caller: 'key/k', role: 'viewer', keyId: 'k' };
const accessOf = (method: string, url: string | undefined) =>
  routeOf({ method, routeOptions: { url } } as Parameters<typeof routeOf>[0])?.access;

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

  it('leave only probes, deliveries, reports, the sign-in and connect open, and give viewers no write but their own session', () => {
    const open = [...HTTP_ROUTES, ...SOCKET_METHODS].filter(({ access }) => access === 'open');
    expect(open.map((entry) => ('path' in entry ? entry.path : entry.name))).toEqual([
      '/healthz',
      '/readyz',
      '/webhook/{channel}',
      '/webhook/{channel}',
      '/api/v1/dashboard/session',
      '/csp-report',
      'connect',
    ]);
    const changes = HTTP_ROUTES.filter(({ method, access }) => method !== 'get' && access !== 'open');
    const own = changes.filter(({ access }) => access === 'authenticated');
    expect(own.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'patch /api/v1/dashboard/session',
      'delete /api/v1/dashboard/session',
      'post /api/v1/dashboard/links',
    ]);
    for (const { access } of changes)
      if (access !== 'authenticated') expect(() => authorize(viewer, access)).toThrow('lacks the permission');
  });
});

describe('a feature of the configuration', () => {
  it('is refused by its name while it is off', () => {
    const features = { agentRuntimeV1: false, memoryV1: true, workersV1: true };
    expect(() => requireFeature(features, 'agent_runtime_v1')).toThrow(/agent_runtime_v1 is off/);
    expect(() => requireFeature(features, 'workers_v1')).not.toThrow();
    expect(() => requireFeature(features, undefined)).not.toThrow();
  });
});

describe('a route without a rule', () => {
  it('does not compile', () => {
    // @ts-expect-error: `access` is required
    const route: HttpRoute = { ...HTTP_ROUTES[0]!, access: undefined };
    const { access: _, ...rest } = HTTP_ROUTES[0]!;
    // @ts-expect-error: `access` is required
    const other: HttpRoute = rest;
    // @ts-expect-error: `access` is required
    const method: SocketMethod = { ...SOCKET_METHODS[0]!, access: undefined };
    expect([route, other, method]).toHaveLength(3);
  });
});
