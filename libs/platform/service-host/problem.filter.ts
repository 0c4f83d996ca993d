import { Catch, HttpException } from '@nestjs/common';
import type { ArgumentsHost, ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isAppError, toAppError } from '@antiphon/kernel';
import type { AppError } from '@antiphon/kernel';
import { countError, countFailure } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import { PROBLEM_MEDIA_TYPE, makeProblem, problemOf, retryAfterSeconds } from './problem.js';
import type { ProblemDocument } from './problem.js';

// Codes of what Nest and Fastify refuse before any code of ours sees it.
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
  if (status === 500) logger.error({ err: error, status, code }, 'a request failed unexpectedly');
  else if (status > 500) logger.warn({ err: error, status, code }, 'a request failed; trying again may help');
  else logger.info({ status, code }, 'a request was refused');
};

/** Answers an error as a problem document with the request's id, and writes the log line that has the rest. */
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
  // The headers are out already: the rest of a streamed answer cannot be turned into a document.
  if (reply.sent || reply.raw.headersSent) return void reply.raw.destroy();
  const retryAfter = cause === null ? undefined : retryAfterSeconds(cause);
  if (retryAfter !== undefined) void reply.header('retry-after', retryAfter);
  void reply.status(problem.status).header('content-type', PROBLEM_MEDIA_TYPE).send(JSON.stringify(problem));
};

/** Nest's filter for everything that HTTP handlers, guards, pipes, the router and the body parser throw. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(private readonly logger: Logger) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    sendProblem(this.logger, error, http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>());
  }
}
