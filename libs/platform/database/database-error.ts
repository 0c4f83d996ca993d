import { type AppError, bug, conflict, forbidden, isAppError, toAppError, transient } from '@antiphon/kernel';

/** SQLSTATE classes and codes after which the same statement may succeed: connection, resources, locks, shutdown. */
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
/** Errors of the socket, and of `pg` itself, which gives them no code. */
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
const SOCKET_MESSAGES =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed|Query read timeout|timeout expired)/;

const codeOf = (error: unknown): string => {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : '';
};

/** True when the connection broke, so that nobody knows whether a statement that was sent took effect. */
export const isConnectionLost = (error: unknown): boolean => {
  const code = codeOf(error);
  return (
    SOCKET_CODES.has(code) ||
    code.startsWith('08') ||
    code.startsWith('57P') ||
    (error instanceof Error && SOCKET_MESSAGES.test(error.message))
  );
};

/** True when trying again may help: the server is away, busy, out of space, or gave up waiting for a lock. */
export const isTransientDatabaseError = (error: unknown): boolean => {
  const code = codeOf(error);
  return isConnectionLost(error) || TRANSIENT_CODES.has(code) || TRANSIENT_CLASSES.has(code.slice(0, 2));
};

/** True for what the server or the driver threw, as opposed to the code that used them. */
export const isDatabaseError = (error: unknown): boolean =>
  isConnectionLost(error) || /^(?=.*\d)[0-9A-Z]{5}$/.test(codeOf(error));

/**
 * What `pg` throws, as an AppError: `LOG.UNAVAILABLE` (transient), `DATABASE.FORBIDDEN`, `DATABASE.UNIQUE`
 * (conflict; data: constraint), else `DATABASE.ERROR` (bug; data: sqlstate). The message never carries SQL or
 * values. Anything else than a database error becomes a bug of its own.
 */
export const translateDatabaseError = (error: unknown): AppError => {
  if (isAppError(error) || !isDatabaseError(error)) return toAppError(error);
  if (isTransientDatabaseError(error))
    return transient('LOG.UNAVAILABLE', 'the database cannot be reached or is too busy; try again', {
      cause: error,
    });
  const code = codeOf(error);
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
