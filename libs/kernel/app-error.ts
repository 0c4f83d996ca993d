/**
 * Closed list of error kinds; each means one reaction of the caller. Only platform edges translate
 * a kind to a status, an ack or a retry (docs/errors.md).
 */
export const ERROR_KINDS = [
  'invalid',
  'unauthenticated',
  'forbidden',
  'not_found',
  'rejected',
  'conflict',
  'transient',
  'exhausted',
  'provider',
  'bug',
] as const;
export type ErrorKind = (typeof ERROR_KINDS)[number];

/** Plain data that travels with an error; never a secret, a stack or SQL. */
export type ErrorData = Readonly<Record<string, unknown>>;

/**
 * A broken rule or a failed dependency. Compare `code`, never `instanceof`: errors cross processes.
 * The form of a code is AREA.REASON (docs/errors.md). The message is safe to show to a client.
 */
export class AppError extends Error {
  readonly kind: ErrorKind;
  readonly code: string;
  readonly data: ErrorData;

  constructor(
    kind: ErrorKind,
    code: string,
    message: string,
    options: { cause?: unknown; data?: ErrorData } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'AppError';
    this.kind = kind;
    this.code = code;
    this.data = options.data ?? {};
  }
}

/** True for an error with a kind and a code, from any process or copy of this module. */
export const isAppError = (error: unknown): error is AppError =>
  error instanceof Error &&
  typeof (error as Partial<AppError>).code === 'string' &&
  (ERROR_KINDS as readonly string[]).includes((error as Partial<AppError>).kind ?? '');

const errorFactory =
  (kind: ErrorKind) =>
  (code: string, message: string, options?: { cause?: unknown; data?: ErrorData }): AppError =>
    new AppError(kind, code, message, options);

export const invalid = errorFactory('invalid');
export const unauthenticated = errorFactory('unauthenticated');
export const forbidden = errorFactory('forbidden');
export const notFound = errorFactory('not_found');
/** Creates the error of a broken domain rule. */
export const rejected = errorFactory('rejected');
export const conflict = errorFactory('conflict');
/** Creates the error of a dependency that is down or slow; a retry may succeed. */
export const transient = errorFactory('transient');
/** Creates the error of a used-up budget or rate limit. */
export const exhausted = errorFactory('exhausted');
export const providerFailed = errorFactory('provider');
export const bug = errorFactory('bug');

/** Returns an AppError unchanged, and wraps any other error as a bug without its details. */
export const toAppError = (error: unknown): AppError =>
  isAppError(error)
    ? error
    : bug('INTERNAL.UNEXPECTED', 'an unexpected error happened; the log line with this request id has it', {
        cause: error,
      });
