import { HTTP_ROUTES, ROUTE_GROUPS, SOCKET_METHODS, type HttpRoute } from '@antiphon/contracts/reference';
import { describe, expect, it } from '@jest/globals';
import { METHODS, ROUTES } from './reference-table.js';

describe('the table of routes and methods (npm run generate:client)', () => {
  it('has every route of the reference, by a name of its own', () => {
    const routes = ROUTE_GROUPS.flatMap((group) => Object.entries<HttpRoute>(group));
    const expected = routes.map(([name, { method, path, idempotent = false, reply }]) => {
      return [name, { method, path, idempotent, text: reply.media !== undefined }];
    });
    const actual = Object.entries(ROUTES).map(([name, { idempotent = false, text = false, ...route }]) => {
      return [name, { ...route, idempotent, text }];
    });
    expect(actual).toEqual(expected);
    expect(new Set(routes.map(([name]) => name)).size).toBe(HTTP_ROUTES.length);
  });

  it('has every method of the reference, and repeats only those that read', () => {
    expect(Object.keys(METHODS)).toEqual(SOCKET_METHODS.map(({ name }) => name));
    for (const { name, access } of SOCKET_METHODS)
      expect([name, METHODS[name as keyof typeof METHODS]?.reads ?? false]).toEqual([
        name,
        access.endsWith(':read') || access === 'authenticated',
      ]);
  });
});
