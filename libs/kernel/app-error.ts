/**
 * The closed list of what can go wrong, seen from whoever has to react:
 * only platform edges translate a kind into a status, an ack or a retry (docs/errors.md).
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

/** Plain data that may travel with an error: never a secret, a stack or SQL. */
export type ErrorData = Readonly<Record<string, unknown>>;

/**
 * A broken rule or a failed dependency. Compare `code`, never `instanceof`: errors cross processes.
 * `code` reads AREA.REASON, listed in docs/errors.md; `message` is safe to show to a client.
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

/** True for an error that carries a kind and a code, whichever process or copy of this module made it. */
export const isAppError = (error: unknown): error is AppError =>
  error instanceof Error &&
  typeof (error as Partial<AppError>).code === 'string' &&
  (ERROR_KINDS as readonly string[]).includes((error as Partial<AppError>).kind ?? '');

const maker =
  (kind: ErrorKind) =>
  (code: string, message: string, options?: { cause?: unknown; data?: ErrorData }): AppError =>
    new AppError(kind, code, message, options);

export const invalid = maker('invalid');
export const unauthenticated = maker('unauthenticated');
export const forbidden = maker('forbidden');
export const notFound = maker('not_found');
/** A domain rule says no. */
export const rejected = maker('rejected');
export const conflict = maker('conflict');
/** Something that is down or slow; trying again may help. */
export const transient = maker('transient');
/** A budget or a rate is used up. */
export const exhausted = maker('exhausted');
export const providerFailed = maker('provider');
export const bug = maker('bug');

/** Wraps whatever was thrown: an AppError stays itself, anything else becomes a bug without its details. */
export const toAppError = (error: unknown): AppError =>
  isAppError(error)
    ? error
    : bug('INTERNAL.UNEXPECTED', 'an unexpected error happened; the log line with this request id has it', {
        cause: error,
      });
