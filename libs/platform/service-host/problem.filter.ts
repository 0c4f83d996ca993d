import { STATUS_CODES } from 'node:http';
import { Catch, HttpException } from '@nestjs/common';
import type { ArgumentsHost, ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isAppError, toAppError } from '@antiphon/kernel';
import type { AppError, ErrorKind } from '@antiphon/kernel';
import { countError, countFailure } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';

/** Body of every HTTP error (RFC 9457); media type `application/problem+json`. */
export interface ProblemDocument {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  /** The request's id, which its log lines carry. */
  readonly instance: string;
  readonly code: string;
  /** Fields of the error that help its caller. Only errors of `SHOWN_DATA` have them. */
  readonly data?: Readonly<Record<string, unknown>>;
}

export const PROBLEM_MEDIA_TYPE = 'application/problem+json';

const STATUS_OF: Readonly<Record<ErrorKind, number>> = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  rejected: 422,
  conflict: 409,
  transient: 503,
  exhausted: 429,
  provider: 502,
  bug: 500,
};

/** Returns the HTTP status of an error kind (docs/errors.md). */
export const statusOf = (kind: ErrorKind): number => STATUS_OF[kind];

export const makeProblem = (
  status: number,
  code: string,
  detail: string,
  instance: string,
): ProblemDocument => ({
  type: `urn:antiphon:error:${code}`,
  title: STATUS_CODES[status] ?? 'Error',
  status,
  detail,
  instance,
  code,
});

/** Fields of the data that a problem document has, by the code of the error. */
const SHOWN_DATA: ReadonlyMap<string, readonly string[]> = new Map([
  ['FILE.STALE', ['path', 'digest', 'expected', 'diff']],
]);

const shownData = ({ code, data }: AppError): Pick<ProblemDocument, 'data'> => {
  const shown = SHOWN_DATA.get(code)?.filter((name) => name in data);
  return shown ? { data: Object.fromEntries(shown.map((name) => [name, data[name]])) } : {};
};

/**
 * Makes the problem document of an error from its text and code, without its cause and stack, and
 * without data that is not in `SHOWN_DATA`.
 */
export const problemOf = (error: AppError, instance: string): ProblemDocument => ({
  ...makeProblem(statusOf(error.kind), error.code, error.message, instance),
  ...shownData(error),
});

const DEFAULT_RETRY_SECONDS = 1;

/** Returns the seconds for `Retry-After`, undefined for an error that no retry fixes. */
export const retryAfterSeconds = (error: AppError): number | undefined => {
  if (error.kind !== 'transient' && error.kind !== 'exhausted') return undefined;
  const { retryAfterSeconds: seconds } = error.data;
  if (typeof seconds === 'number' && seconds >= 0) return Math.ceil(seconds);
  return error.kind === 'transient' ? DEFAULT_RETRY_SECONDS : undefined;
};

// Codes of errors that Nest and Fastify raise before our code runs.
const CODE_OF: Readonly<Record<number, string>> = {
  400: 'HTTP.MALFORMED',
  404: 'HTTP.NOT_FOUND',
  405: 'HTTP.METHOD_NOT_ALLOWED',
  408: 'HTTP.TIMEOUT',
  413: 'HTTP.TOO_LARGE',
  414: 'HTTP.TOO_LARGE',
  415: 'HTTP.UNSUPPORTED_MEDIA_TYPE',
  503: 'HTTP.UNAVAILABLE',
};

const statusIn = (error: unknown): number | undefined => {
  if (error instanceof HttpException) return error.getStatus();
  const { statusCode } = (error ?? {}) as { statusCode?: unknown };
  return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500 ? statusCode : undefined;
};

const problemFor = (
  error: unknown,
  instance: string,
): { problem: ProblemDocument; cause: AppError | null } => {
  const status = isAppError(error) ? undefined : statusIn(error);
  if (status !== undefined && status < 500) {
    // Nest's own text repeats the whole URL, query included.
    const detail = status === 404 ? 'there is nothing at this path' : (error as Error).message;
    return { problem: makeProblem(status, CODE_OF[status] ?? 'HTTP.REFUSED', detail, instance), cause: null };
  }
  const cause = toAppError(error);
  return { problem: problemOf(cause, instance), cause };
};

const log = (logger: Logger, error: unknown, { status, code }: ProblemDocument): void => {
  if (status === 500) logger.error({ err: error, status, code }, 'HTTP request failed unexpectedly');
  else if (status > 500) logger.warn({ err: error, status, code }, 'HTTP request failed, retry possible');
  else logger.info({ status, code }, 'HTTP request refused');
};

/** Sends an error as a problem document with the request's id, and logs the details. */
export const sendProblem = (
  logger: Logger,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): void => {
  const { problem, cause } = problemFor(error, request.id);
  if (cause) countError('http', cause);
  else countFailure('http', 'refused', problem.code);
  log(logger, error, problem);
  // Headers are sent: a streamed response can only be cut off.
  if (reply.sent || reply.raw.headersSent) return void reply.raw.destroy();
  const retryAfter = cause === null ? undefined : retryAfterSeconds(cause);
  if (retryAfter !== undefined) void reply.header('retry-after', retryAfter);
  void reply.status(problem.status).header('content-type', PROBLEM_MEDIA_TYPE).send(JSON.stringify(problem));
};

/** Nest's filter for all errors of HTTP handlers, guards, pipes, the router and the body parser. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(private readonly logger: Logger) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    sendProblem(this.logger, error, http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>());
  }
}
