import { describe, expect, it } from '@jest/globals';
import {
  HTTP_ROUTES,
  isHeavy,
  METHOD_COSTS,
  ROUTE_COSTS,
  ROUTE_GROUPS,
  SOCKET_METHODS,
  type RouteTable,
} from './index.js';

const names = ROUTE_GROUPS.flatMap((routes) => Object.keys(routes)) as (keyof RouteTable)[];
const routes = Object.assign({}, ...ROUTE_GROUPS) as RouteTable;

describe('the cost of requests', () => {
  it('is known for each route and each method, and for no others', () => {
    expect(Object.keys(ROUTE_COSTS).sort()).toEqual([...names].sort());
    expect(names).toHaveLength(HTTP_ROUTES.length);
    expect(Object.keys(METHOD_COSTS).sort()).toEqual(SOCKET_METHODS.map(({ name }) => name).sort());
  });

  it('is heavy for each read of the past', () => {
    const takesAt = names.filter((name) => {
      const { query } = routes[name] as { query?: { shape: object } };
      return query !== undefined && 'at' in query.shape;
    });
    expect(takesAt.filter((name) => !isHeavy(ROUTE_COSTS[name], { at: 1 }))).toEqual([]);
    expect(names.filter((name) => ROUTE_COSTS[name] === 'past' && !takesAt.includes(name))).toEqual([]);
  });

  it('is small for uploads by their stream, for event streams and for what a page of keys needs', () => {
    for (const name of [
      'streamChat',
      'readIdentity',
      'listKeys',
      'signIn',
      'health',
      'alive',
      'ready',
    ] as const)
      expect([name, isHeavy(ROUTE_COSTS[name], {})]).toEqual([name, false]);
  });

  // @shows review2-7-heavy-reads
  it('must be given for a new route', () => {
    const { readEvents: _, ...others } = ROUTE_COSTS;
    // @ts-expect-error: a route without a cost
    const costs: typeof ROUTE_COSTS = others;
    expect(costs).toBe(others);
  });
});
