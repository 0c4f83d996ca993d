import { STATUS_CODES } from 'node:http';
import type { AppError, ErrorKind } from '@antiphon/kernel';

/** RFC 9457, as every HTTP error of ours looks; media type `application/problem+json`. */
export interface ProblemDocument {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  /** The request's id, which the log lines carry. */
  readonly instance: string;
  readonly code: string;
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

/** What a kind of error is in HTTP (house style §5, contract §4). */
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

/** The problem document of an error; its text and code, never its cause, data or stack. */
export const problemOf = (error: AppError, instance: string): ProblemDocument =>
  makeProblem(statusOf(error.kind), error.code, error.message, instance);

const DEFAULT_RETRY_SECONDS = 1;

/** Seconds after which trying again makes sense, for `Retry-After`; undefined where it never does. */
export const retryAfterSeconds = (error: AppError): number | undefined => {
  if (error.kind !== 'transient' && error.kind !== 'exhausted') return undefined;
  const { retryAfterSeconds: said } = error.data;
  if (typeof said === 'number' && said >= 0) return Math.ceil(said);
  return error.kind === 'transient' ? DEFAULT_RETRY_SECONDS : undefined;
};
