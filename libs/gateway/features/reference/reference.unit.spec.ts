import 'reflect-metadata';
import { describe, expect, it } from '@jest/globals';
import { FRAME_EVENTS } from '@antiphon/contracts/agent';
import { EVENT_FRAMES, HTTP_ROUTES, SOCKET_METHODS, STREAM_FRAMES } from '@antiphon/contracts/reference';
import type { JsonObject, JsonValue } from '@antiphon/kernel';
import { GatewayModule } from '../gateway.module.js';
import { asyncApiDocument } from './asyncapi-document.js';
import { openApiDocument } from './openapi-document.js';
import {
  loadRendererBundle,
  REFERENCE_SCRIPT,
  referencePage,
  REFERENCE_PAGE_POLICY,
} from './reference-page.js';

// In the order of Nest's RequestMethod.
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

/** Returns the references of a document that do not resolve. */
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

describe('the API reference', () => {
  it('documents exactly the routes that the gateway serves', () => {
    const controllers = Reflect.getMetadata('controllers', GatewayModule) as Controller[];
    // The service host serves probes and metrics for every service.
    const own = HTTP_ROUTES.filter(({ everywhere }) => !everywhere).map(
      ({ method, path, rest }) => `${method} ${path.replace(`{${rest ?? ''}}`, '*')}`,
    );
    expect(own.sort()).toEqual(controllers.flatMap(routesOf).sort());
  });

  it('documents every kind of stream frame', () =>
    expect(Object.keys(STREAM_FRAMES).sort()).toEqual([...FRAME_EVENTS].sort()));

  it('is an OpenAPI 3.1 document with one operation for each route', () => {
    const document = openApiDocument('0.1.0') as { openapi: string; paths: Record<string, JsonObject> };
    expect(document.openapi).toBe('3.1.0');
    expect(deadRefs(document)).toEqual([]);
    const operations = Object.values(document.paths).flatMap((path) => Object.values(path)) as JsonObject[];
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(HTTP_ROUTES.length);
    expect(document.paths['/api/v1/agents/{id}']).toMatchObject({
      get: {
        operationId: 'getApiV1AgentsId',
        parameters: [
          { name: 'id', in: 'path', required: true },
          { name: 'at', in: 'query', required: false },
          { name: 'after', in: 'query', required: false },
        ],
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

  it('is an AsyncAPI 3 document with one operation for each method and two for unsolicited frames', () => {
    const document = asyncApiDocument('0.1.0') as { asyncapi: string; operations: JsonObject };
    expect(document.asyncapi).toBe('3.0.0');
    expect(deadRefs(document)).toEqual([]);
    expect(Object.keys(document.operations)).toHaveLength(SOCKET_METHODS.length + 2);
    expect(document.operations).toMatchObject({ engine_news: { action: 'send' } });
  });

  it.each(HTTP_ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const))(
    'has valid examples and descriptions of %s',
    (_name, { params, query, body, reply, example, description }) => {
      expect(description).toMatch(/\.$/);
      for (const [schema, value] of [
        [params, example.params],
        [query, example.query],
        [body, example.body],
      ] as const) {
        if (schema === params || schema === body) expect(value === undefined).toBe(schema === undefined);
        if (schema && value !== undefined) expect(schema.safeParse(value).error).toBeUndefined();
      }
      if (example.reply !== undefined) expect(reply.schema.safeParse(example.reply).error).toBeUndefined();
      else
        expect(reply.media !== undefined || reply.status === 204 || reply.schema.safeParse({}).success).toBe(
          true,
        );
    },
  );

  it.each(SOCKET_METHODS.map((method) => [method.name, method] as const))(
    'has valid examples and descriptions of %s',
    (_name, { params, answer, example, description }) => {
      expect(description).toMatch(/\.$/);
      expect(params.safeParse(example.params).error).toBeUndefined();
      if (typeof answer !== 'string') expect(answer.safeParse(example.result).error).toBeUndefined();
    },
  );

  it('has a valid example of every stream frame', () => {
    for (const [event, { data, example }] of Object.entries({ ...STREAM_FRAMES, ...EVENT_FRAMES }))
      expect([event, data.safeParse(example).error]).toEqual([event, undefined]);
  });
});

describe('the reference page', () => {
  it('loads only files of its own origin', () => {
    const page = referencePage('0.1.0<b>');
    const urls = [...page.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, url]) => url);
    expect(urls.sort()).toEqual(['/asyncapi.json', '/docs/reference.js', '/docs/scalar.js', '/openapi.json']);
    expect(page).not.toMatch(/<script(?! src=)/);
    expect(page).toContain('0.1.0&lt;b&gt;');
    expect(REFERENCE_SCRIPT).not.toMatch(/https?:/);
  });

  it('has a policy without unsafe scripts, foreign origins or default sources', () => {
    expect(REFERENCE_PAGE_POLICY).toMatch(/^default-src 'none'; script-src 'self'; /);
    expect(REFERENCE_PAGE_POLICY).toContain("connect-src 'self'");
    expect(REFERENCE_PAGE_POLICY).not.toMatch(/https?:|\*|unsafe-eval|script-src[^;]*unsafe/);
  });

  it('gets its renderer from the installed package', async () => {
    const bundle = await loadRendererBundle();
    const script = await bundle.plain();
    expect(script.length).toBeGreaterThan(1024 * 1024);
    expect(bundle.gzip.length).toBeLessThan(script.length / 2);
    expect(script.toString('utf8')).toContain('createApiReference');
  });
});
