import 'reflect-metadata';
import { describe, expect, it } from '@jest/globals';
import { FRAME_EVENTS } from '@antiphon/contracts/agent';
import { HTTP_ROUTES, SOCKET_METHODS, STREAM_FRAMES } from '@antiphon/contracts/reference';
import type { JsonObject, JsonValue } from '@antiphon/kernel';
import { GatewayModule } from '../gateway.module.js';
import { asyncApiDocument } from './asyncapi-document.js';
import { openApiDocument } from './openapi-document.js';
import { referencePage } from './reference-page.js';

// As Nest's decorators keep them.
const METHODS = ['get', 'post', 'put', 'delete', 'patch'] as const;
type Controller = new (...args: never[]) => object;

const routesOf = (controller: Controller): string[] => {
  const base = String(Reflect.getMetadata('path', controller));
  const { prototype } = controller as { prototype: Record<string, unknown> };
  return Object.getOwnPropertyNames(prototype).flatMap((name) => {
    const handler = name === 'constructor' ? undefined : prototype[name];
    const path: unknown = typeof handler === 'function' ? Reflect.getMetadata('path', handler) : undefined;
    if (path === undefined) return [];
    const method = METHODS[Reflect.getMetadata('method', handler as object) as number];
    const whole = ['', base, String(path)]
      .join('/')
      .replaceAll(/\/+/g, '/')
      .replace(/(.)\/$/, '$1');
    return [`${method} ${whole.replaceAll(/:(\w+)/g, '{$1}')}`];
  });
};

/** Every `$ref` of a document, and whether it leads somewhere. */
const deadRefs = (document: JsonObject): string[] => {
  const refs: string[] = [];
  const walk = (value: JsonValue): void => {
    if (value === null || typeof value !== 'object') return;
    const { $ref } = value as JsonObject;
    if (typeof $ref === 'string') refs.push($ref);
    Object.values(value).forEach((inner) => walk(inner as JsonValue));
  };
  walk(document);
  const find = (ref: string): unknown =>
    ref
      .slice(2)
      .split('/')
      .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], document);
  return refs.filter((ref) => !ref.startsWith('#/') || find(ref) === undefined);
};

describe('the reference', () => {
  it('has every route that the gateway serves, and no other', () => {
    const controllers = Reflect.getMetadata('controllers', GatewayModule) as Controller[];
    // Probes and metrics are the service host's, for every service.
    const own = HTTP_ROUTES.filter(({ everywhere }) => !everywhere).map(
      ({ method, path }) => `${method} ${path}`,
    );
    expect(own.sort()).toEqual(controllers.flatMap(routesOf).sort());
  });

  it('has every kind of stream frame', () =>
    expect(Object.keys(STREAM_FRAMES).sort()).toEqual([...FRAME_EVENTS].sort()));

  it('is OpenAPI 3.1 with an operation of its own for each route', () => {
    const document = openApiDocument('0.1.0') as { openapi: string; paths: Record<string, JsonObject> };
    expect(document.openapi).toBe('3.1.0');
    expect(deadRefs(document)).toEqual([]);
    const operations = Object.values(document.paths).flatMap((path) => Object.values(path)) as JsonObject[];
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(HTTP_ROUTES.length);
    expect(document.paths['/api/v1/agents/{id}']).toMatchObject({
      get: {
        operationId: 'getApiV1AgentsId',
        parameters: [{ name: 'id', in: 'path', required: true }],
        responses: { 404: {} },
      },
    });
    expect(document.paths['/api/v1/runs']).toMatchObject({
      post: { parameters: [{ name: 'Idempotency-Key', in: 'header', required: false }] },
    });
    expect(document.paths['/api/v1/events']).toMatchObject({
      get: {
        parameters: expect.arrayContaining([expect.objectContaining({ name: 'limit', required: false })]),
      },
    });
  });

  it('is AsyncAPI 3 with an operation for each method, and what comes unasked', () => {
    const document = asyncApiDocument('0.1.0') as { asyncapi: string; operations: JsonObject };
    expect(document.asyncapi).toBe('3.0.0');
    expect(deadRefs(document)).toEqual([]);
    expect(Object.keys(document.operations)).toHaveLength(SOCKET_METHODS.length + 1);
    expect(document.operations).toMatchObject({ engine_news: { action: 'send' } });
  });

  it('is a page that loads nothing and runs nothing', () => {
    const page = referencePage('0.1.0<b>');
    expect(page).not.toMatch(/<script|src=|http:\/\/|https:\/\/(?!json-schema)/);
    expect(page).toContain('0.1.0&lt;b&gt;');
    for (const { name } of SOCKET_METHODS) expect(page).toContain(`id="${name}"`);
    for (const { path } of HTTP_ROUTES) expect(page).toContain(path);
  });
});
