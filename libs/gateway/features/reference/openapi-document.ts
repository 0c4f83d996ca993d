import { IdempotencyKey } from '@antiphon/contracts/agent';
import { Position, Problem } from '@antiphon/contracts/gateway';
import { costOf, HTTP_ROUTES, ROUTE_TAGS, UPLOAD_MEDIA } from '@antiphon/contracts/reference';
import type { HttpRoute } from '@antiphon/contracts/reference';
import type { JsonObject, JsonValue } from '@antiphon/kernel';
import { jsonSchemaOf } from './json-schema.js';

/** Problems that any route can return. */
const COMMON: Readonly<Record<number, string>> = {
  403: 'the `Host` or `Origin` is not the gateway’s own',
  429: 'too many failed attempts from this address',
  503: 'an engine is down; `Retry-After` gives the seconds to wait',
};
const UNAUTHENTICATED = { 401: 'a token is configured, and the request has none that is valid' };

const DESCRIPTION = `The HTTP API of an Antiphon gateway. Messages are sent and turns are streamed over the WebSocket
\`/ws\`; see the WebSocket API.

Errors are RFC 9457 problem documents (\`application/problem+json\`) with a stable \`code\`. Bodies have at most 1 MiB.
Lists page with \`limit\` and an opaque \`cursor\`. Where a route takes an \`Idempotency-Key\`, a repeated request gets the
first response and the work is done once.

On loopback without a configured token no authentication is needed.`;

const parametersOf = (
  at: 'path' | 'query',
  schema: HttpRoute['query'],
  examples: Readonly<Record<string, JsonValue>> = {},
): JsonObject[] => {
  if (!schema) return [];
  const { properties = {}, required = [] } = jsonSchemaOf(schema, 'input') as {
    properties?: Record<string, JsonObject>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, ...property }]) => ({
    name,
    in: at,
    required: at === 'path' || required.includes(name),
    ...(description === undefined ? {} : { description }),
    ...(examples[name] === undefined ? {} : { example: examples[name] }),
    schema: property,
  }));
};

const IDEMPOTENCY_KEY: JsonObject = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'A request that is repeated under the same key is executed once and gets the first response.',
  schema: jsonSchemaOf(IdempotencyKey, 'input'),
};

const AFTER: JsonObject = {
  name: 'after',
  in: 'query',
  required: false,
  description:
    'Waits up to 2 s until the read contains this position of the log: `antiphon-position` of the response to a write.',
  schema: jsonSchemaOf(Position, 'input'),
};

/** Returns true for a read that waits for the position `after`, and has no other use for it. */
const takesAfter = ({ method, path, query, access }: HttpRoute): boolean =>
  method === 'get' && path.startsWith('/api/v1/') && access !== 'open' && !(query && 'after' in query.shape);

const problemResponse = (description: string): JsonObject => ({
  description,
  content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
});

const withExample = (schema: JsonObject, example: unknown): JsonObject =>
  example === undefined ? { schema } : { schema, example: example as JsonValue };

const successOf = ({ reply, example }: HttpRoute): JsonObject => {
  if (reply.status === 204) return { description: 'Success, without a body.' };
  const content = withExample(jsonSchemaOf(reply.schema, 'output'), example.reply);
  return { description: 'Success.', content: { [reply.media ?? 'application/json']: content } };
};

const responsesOf = (route: HttpRoute): JsonObject => {
  const problems = {
    ...(route.access === 'open' ? {} : { ...COMMON, ...UNAUTHENTICATED }),
    ...route.problems,
  };
  return {
    [route.reply.status ?? 200]: successOf(route),
    ...Object.fromEntries(Object.entries(problems).map(([status, why]) => [status, problemResponse(why)])),
  };
};

const requestBodyOf = ({ body, bodyMedia = [], upload, example }: HttpRoute): JsonObject => {
  if (!body) return {};
  const schema = jsonSchemaOf(body, 'input');
  const content = {
    'application/json': withExample(schema, example.body),
    ...Object.fromEntries(bodyMedia.map((media) => [media, { schema: { type: 'string' } }])),
    ...(upload ? { [UPLOAD_MEDIA]: { schema: { type: 'string', format: 'binary' } } } : {}),
  };
  return { requestBody: { required: true, content } };
};

const operationOf = (route: HttpRoute): JsonObject => ({
  operationId: `${route.method}${route.path.replaceAll(/[^A-Za-z0-9]+(.)?/g, (_, next?: string) => next?.toUpperCase() ?? '')}`,
  tags: [route.tag],
  summary: route.summary,
  description: route.description,
  parameters: [
    ...parametersOf('path', route.params, route.example.params),
    ...parametersOf('query', route.query, route.example.query),
    ...(takesAfter(route) ? [AFTER] : []),
    ...(route.idempotent ? [IDEMPOTENCY_KEY] : []),
  ],
  ...requestBodyOf(route),
  'x-antiphon-cost': costOf(route),
  responses: responsesOf(route),
  security: route.access === 'open' ? [] : [{ token: [] }, {}],
});

/**
 * Returns the OpenAPI 3.1 document of every HTTP route, generated from the schemas that validate
 * the requests.
 */
export const openApiDocument = (version: string, routes = HTTP_ROUTES): JsonObject => {
  const paths: Record<string, Record<string, JsonValue>> = {};
  for (const route of routes)
    paths[route.path] = { ...paths[route.path], [route.method]: operationOf(route) };
  return {
    openapi: '3.1.0',
    info: {
      title: 'Antiphon HTTP API',
      version,
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'This gateway' }],
    tags: Object.entries(ROUTE_TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: { Problem: jsonSchemaOf(Problem, 'output') },
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'The gateway’s token. Not needed on loopback without a configured token.',
        },
      },
    },
  };
};
