import type { FastifyReply, FastifyRequest } from 'fastify';

type Request = Pick<FastifyRequest, 'method' | 'headers'>;
type Reply = Pick<FastifyReply, 'header' | 'getHeader'>;

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';
const REQUEST_HEADERS = 'authorization, content-type, idempotency-key, last-event-id, traceparent';
const RESPONSE_HEADERS =
  'retry-after, etag, content-disposition, x-request-id, x-file-version, antiphon-position, antiphon-head';
/** Time for which a browser remembers a preflight, seconds. */
const MAX_AGE_S = 600;

/** Returns true if a browser asks whether a page of a configured origin may send a request. */
export const isPreflight = ({ method, headers }: Request, allowedOrigins: ReadonlySet<string>): boolean =>
  method === 'OPTIONS' &&
  headers['access-control-request-method'] !== undefined &&
  allowedOrigins.has(headers.origin ?? '');

/**
 * Adds the headers with which a browser lets a foreign page read a response, if its origin is a
 * configured one. Credentials of the browser are never allowed: the page sends its own. A response
 * to a preflight is the same for every path, so that it tells nothing about the API.
 */
export const addCrossOriginHeaders = (
  request: Request,
  reply: Reply,
  allowedOrigins: ReadonlySet<string>,
): void => {
  const { origin } = request.headers;
  if (allowedOrigins.size === 0) return;
  const varies = [reply.getHeader('vary')].flat().filter(Boolean).join(', ');
  reply.header('vary', varies === '' ? 'Origin' : `${varies}, Origin`);
  if (origin === undefined || !allowedOrigins.has(origin)) return;
  reply.header('access-control-allow-origin', origin);
  if (!isPreflight(request, allowedOrigins))
    return void reply.header('access-control-expose-headers', RESPONSE_HEADERS);
  reply.header('access-control-allow-methods', METHODS);
  reply.header('access-control-allow-headers', REQUEST_HEADERS);
  reply.header('access-control-max-age', String(MAX_AGE_S));
};
