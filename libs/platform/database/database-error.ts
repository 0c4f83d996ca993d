import { type AppError, bug, conflict, forbidden, isAppError, toAppError, transient } from '@antiphon/kernel';

/**
 * SQLSTATE classes and codes after which a retry of the statement may succeed: connection,
 * resources, locks, shutdown.
 */
const TRANSIENT_CLASSES = new Set(['08', '53', '58']);
const TRANSIENT_CODES = new Set([
  '40001',
  '40P01',
  '55P03',
  '57014',
  '57P01',
  '57P02',
  '57P03',
  '57P05',
  '25P03',
]);
const SOCKET_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT',
  'EHOSTUNREACH',
]);
/** Errors of `pg` itself, which have no code. */
const SOCKET_MESSAGES =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed|Query read timeout|timeout expired)/;

const readCode = (error: unknown): string => {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : '';
};

/** True when the connection broke, so that the outcome of a sent statement is unknown. */
export const isConnectionLost = (error: unknown): boolean => {
  const code = readCode(error);
  return (
    SOCKET_CODES.has(code) ||
    code.startsWith('08') ||
    code.startsWith('57P') ||
    (error instanceof Error && SOCKET_MESSAGES.test(error.message))
  );
};

/** True when a retry may succeed: the server is away, busy or full, or a lock wait timed out. */
export const isTransientDatabaseError = (error: unknown): boolean => {
  const code = readCode(error);
  return isConnectionLost(error) || TRANSIENT_CODES.has(code) || TRANSIENT_CLASSES.has(code.slice(0, 2));
};

/** True for an error of the server or of `pg`, as opposed to one of the code that uses them. */
export const isDatabaseError = (error: unknown): boolean =>
  isConnectionLost(error) || /^(?=.*\d)[0-9A-Z]{5}$/.test(readCode(error));

/**
 * Translates an error of `pg` to an AppError: `LOG.UNAVAILABLE` (transient), `DATABASE.FORBIDDEN`,
 * `DATABASE.UNIQUE` (conflict, with the constraint), else `DATABASE.ERROR` (bug, with the
 * SQLSTATE). The message never contains SQL or values. An error that is not the database's becomes
 * a bug.
 */
export const translateDatabaseError = (error: unknown): AppError => {
  if (isAppError(error) || !isDatabaseError(error)) return toAppError(error);
  if (isTransientDatabaseError(error))
    return transient('LOG.UNAVAILABLE', 'the database cannot be reached or is too busy; try again', {
      cause: error,
    });
  const code = readCode(error);
  if (code === '42501')
    return forbidden('DATABASE.FORBIDDEN', 'this service may not do that in the database', { cause: error });
  if (code === '23505') {
    const { constraint } = error as { constraint?: string };
    return conflict('DATABASE.UNIQUE', 'a row with this key exists', { cause: error, data: { constraint } });
  }
  return bug('DATABASE.ERROR', 'the database refused a statement; the log line has the reason', {
    cause: error,
    data: { sqlstate: code },
  });
};
