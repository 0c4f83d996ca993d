import { IdempotencyKey } from '@antiphon/contracts/agent';
import { Problem } from '@antiphon/contracts/gateway';
import { HTTP_ROUTES } from '@antiphon/contracts/reference';
import type { HttpRoute } from '@antiphon/contracts/reference';
import type { JsonObject, JsonValue } from '@antiphon/kernel';
import { jsonSchemaOf } from './json-schema.js';

/** Answered by any route, beside what it says itself. */
const COMMON: Readonly<Record<number, string>> = {
  403: 'the `Host` or `Origin` is not the gateway’s own',
  429: 'too many failed attempts from this address',
  503: 'an engine is down; `Retry-After` says when to come back',
};

const parametersOf = (at: 'path' | 'query', schema: HttpRoute['query']): JsonObject[] => {
  if (!schema) return [];
  const { properties = {}, required = [] } = jsonSchemaOf(schema, 'input') as {
    properties?: Record<string, JsonObject>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: at,
    required: at === 'path' || required.includes(name),
    schema: property,
  }));
};

const IDEMPOTENCY_KEY: JsonObject = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'The same request under the same key is carried out once, and answered again.',
  schema: jsonSchemaOf(IdempotencyKey, 'input'),
};

const problemResponse = (description: string): JsonObject => ({
  description,
  content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
});

const responsesOf = ({ reply, problems, open }: HttpRoute): JsonObject => {
  const unauthenticated = { 401: 'a token is configured, and the request has none that is valid' };
  const all = { ...(open ? {} : { ...COMMON, ...unauthenticated }), ...problems };
  const schema = jsonSchemaOf(reply.schema, 'output');
  return {
    [reply.status ?? 200]: {
      description: 'Done.',
      ...(reply.status === 204 ? {} : { content: { [reply.media ?? 'application/json']: { schema } } }),
    },
    ...Object.fromEntries(Object.entries(all).map(([status, why]) => [status, problemResponse(why)])),
  };
};

const operationOf = (route: HttpRoute): JsonObject => ({
  operationId: `${route.method}${route.path.replaceAll(/[^A-Za-z0-9]+(.)?/g, (_, next?: string) => next?.toUpperCase() ?? '')}`,
  summary: route.summary,
  parameters: [
    ...parametersOf('path', route.params),
    ...parametersOf('query', route.query),
    ...(route.idempotent ? [IDEMPOTENCY_KEY] : []),
  ],
  ...(route.body
    ? {
        requestBody: {
          required: true,
          content: { 'application/json': { schema: jsonSchemaOf(route.body, 'input') } },
        },
      }
    : {}),
  responses: responsesOf(route),
  security: route.open ? [] : [{ token: [] }, {}],
});

/** OpenAPI 3.1 of every HTTP route, made from the contracts that check the requests. */
export const openApiDocument = (version: string, routes = HTTP_ROUTES): JsonObject => {
  const paths: Record<string, Record<string, JsonValue>> = {};
  for (const route of routes)
    paths[route.path] = { ...paths[route.path], [route.method]: operationOf(route) };
  return {
    openapi: '3.1.0',
    info: {
      title: 'Antiphon',
      version,
      description:
        'The HTTP door of an Antiphon gateway. Turns are streamed over the WebSocket door (`/asyncapi.json`).',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    paths,
    components: {
      schemas: { Problem: jsonSchemaOf(Problem, 'output') },
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'The gateway’s token. On loopback with no token configured none is needed.',
        },
      },
    },
  };
};
