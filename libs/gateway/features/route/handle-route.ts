import { Readable } from 'node:stream';
import {
  createParamDecorator,
  Delete,
  Get,
  HttpCode,
  Patch,
  Post,
  Put,
  UnsupportedMediaTypeException,
  type ExecutionContext,
} from '@nestjs/common';
import { IdempotencyKey } from '@antiphon/contracts/agent';
import {
  routerPath,
  UPLOAD_MEDIA,
  type HttpRoute,
  type RouteInput,
  type Upload,
} from '@antiphon/contracts/reference';
import { invalid, MAX_JSON_DEPTH } from '@antiphon/kernel';
import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';

/** Maximum number of values in a body. Many small values take longer than their bytes suggest. */
const MAX_VALUES = 20_000;

/** A value within a request, and the names that lead to it. */
interface Placed {
  readonly value: unknown;
  readonly path: string;
}

const isUnstorable = (text: string): boolean => text.includes('\0') || !text.isWellFormed();

/** Maximum length of the names that lead to a text, in an error. */
const MAX_PATH = 200;

const unstorable = (path: string): string => {
  const where = path === '' ? '' : `${path.split('\0').join('').toWellFormed().slice(0, MAX_PATH)}: `;
  return `${where}a text has a NUL character (U+0000) or half of a UTF-16 pair, which cannot be stored: remove it`;
};

const partsOf = ({ value, path }: Placed): Placed[] => {
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).map(([name, part]) => ({
    value: part as unknown,
    path: path === '' ? name : `${path}.${name}`,
  }));
};

/**
 * Returns the reason why a schema cannot parse a value, undefined without one. The value is too
 * large, or a text in it cannot be stored: no text is changed silently. It is iterative, because a
 * body within the size limit can nest deeper than the stack.
 */
const findFault = (whole: unknown): string | undefined => {
  let level: Placed[] = [{ value: whole, path: '' }];
  let count = 0;
  for (let depth = 0; level.length > 0; depth++) {
    count += level.length;
    if (depth > MAX_JSON_DEPTH) return `it nests over ${MAX_JSON_DEPTH} levels deep`;
    if (count > MAX_VALUES) return `it has over ${MAX_VALUES} values`;
    const odd = level.find(
      ({ value, path }) => isUnstorable(path) || (typeof value === 'string' && isUnstorable(value)),
    );
    if (odd) return unstorable(odd.path);
    level = level.flatMap(partsOf);
  }
  return undefined;
};

const describeIssues = (error: z.ZodError): string =>
  error.issues
    .map(({ path, message }) => [path.map(String).join('.'), message].filter(Boolean).join(': '))
    .join('; ');

const parse = (schema: z.ZodType, value: unknown, code: string): unknown => {
  const reason = findFault(value);
  if (reason !== undefined) throw invalid(code, reason);
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw invalid(code, describeIssues(parsed.error));
};

const parseParams = (
  schema: z.ZodObject,
  values: unknown,
  rest: string | undefined,
): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(schema.shape).map(([name, field]) => {
      const value = (values as Record<string, unknown>)[name === rest ? '*' : name];
      return [name, parse(field as z.ZodType, value, 'GATEWAY.INVALID_BODY')];
    }),
  );

const mediaOf = ({ headers }: Pick<FastifyRequest, 'headers'>): string =>
  headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? '';

/** Refuses text of another type, which is parsed for the routes that accept it only. */
const refuseOtherMedia = ({ bodyMedia = [], upload }: HttpRoute, request: FastifyRequest): void => {
  const type = mediaOf(request);
  if (request.body === undefined || type === 'application/json') return;
  if (type === UPLOAD_MEDIA ? upload === true : bodyMedia.length > 0) return;
  throw new UnsupportedMediaTypeException(`the body must be application/json, not ${type.slice(0, 100)}`);
};

/** Returns the body of an upload, which the content type parser left unread. */
const uploadOf = ({ body, headers }: FastifyRequest): Upload | undefined => {
  if (!(body instanceof Readable)) return undefined;
  const size = headers['content-length'];
  return { bytes: body as AsyncIterable<Uint8Array>, size: size === undefined ? undefined : Number(size) };
};

const KEY = IdempotencyKey.optional();

/**
 * Parses a request by the schemas of its route. Throws `GATEWAY.INVALID_BODY`, `_QUERY` or
 * `_HEADER`.
 */
const parseRequest = (
  route: HttpRoute,
  request: FastifyRequest,
): { readonly [K in keyof RouteInput<HttpRoute>]: unknown } => {
  const { params, query, body, idempotent, rest } = route;
  refuseOtherMedia(route, request);
  const upload = uploadOf(request);
  return {
    upload,
    params: params && parseParams(params, request.params, rest),
    query: query && parse(query, request.query, 'GATEWAY.INVALID_QUERY'),
    body: upload ? undefined : body && parse(body, request.body, 'GATEWAY.INVALID_BODY'),
    idempotencyKey: idempotent
      ? parse(KEY, request.headers['idempotency-key'], 'GATEWAY.INVALID_HEADER')
      : undefined,
  };
};

const Input = createParamDecorator((route: HttpRoute, context: ExecutionContext) =>
  parseRequest(route, context.switchToHttp().getRequest<FastifyRequest>()),
);

const VERBS = { get: Get, post: Post, put: Put, patch: Patch, delete: Delete } as const;

/**
 * Result of a route's handler. Its JSON is checked at compile time; other media are the handler's
 * own.
 */
type RouteReply<R extends HttpRoute> = R['reply'] extends { readonly media: string }
  ? unknown
  : z.input<R['reply']['schema']> | Promise<z.input<R['reply']['schema']>>;

/**
 * Makes a controller's method the handler of a route, as `@HandleRequest` does for a request
 * contract. The method gets the parsed input as its first parameter. Path, verb, status and
 * reference come from the route alone, so that a route without documentation cannot exist.
 */
export const HandleRoute =
  <R extends HttpRoute>(route: R) =>
  <Method extends (input: RouteInput<R>, ...rest: never[]) => RouteReply<R>>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<Method>,
  ): void => {
    Input(route)(target, key, 0);
    VERBS[route.method](routerPath(route))(target, key, descriptor);
    HttpCode(route.reply.status ?? 200)(target, key, descriptor);
  };
