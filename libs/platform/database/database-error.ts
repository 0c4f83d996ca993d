import { type AppError, bug, conflict, isAppError, toAppError, transient } from '@antiphon/kernel';

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
/** Functions of PostgreSQL that refuse a connection: of its login, its database or its limits. */
const CONNECT_ROUTINES = new Set([
  'InitPostgres',
  'CheckMyDatabase',
  'InitializeSessionUserId',
  'auth_failed',
  'ClientAuthentication',
  'ProcessStartupPacket',
]);
const SOCKET_CODES = new Set([
  'ECONNREFUSED',
  // A Unix socket whose queue of new connections is full.
  'EAGAIN',
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

/** True when the server refused the connection, before any statement. */
const isConnectionRefused = (error: unknown): boolean => {
  const { routine } = error as { routine?: unknown };
  return typeof routine === 'string' && CONNECT_ROUTINES.has(routine);
};

/**
 * True when a retry may succeed: the server is away, refuses connections, is busy or full, or a
 * lock wait timed out.
 */
export const isTransientDatabaseError = (error: unknown): boolean => {
  const code = readCode(error);
  return (
    isConnectionLost(error) ||
    isConnectionRefused(error) ||
    TRANSIENT_CODES.has(code) ||
    TRANSIENT_CLASSES.has(code.slice(0, 2))
  );
};

/** True for an error of the server or of `pg`, as opposed to one of the code that uses them. */
export const isDatabaseError = (error: unknown): boolean =>
  isConnectionLost(error) || /^(?=.*\d)[0-9A-Z]{5}$/.test(readCode(error));

/**
 * Translates an error of `pg` to an AppError. `LOG.UNAVAILABLE` is transient. `DATABASE.FORBIDDEN`
 * is a bug, because this service lacks a grant, not its client. `DATABASE.UNIQUE` is a conflict and
 * has the constraint. All else is `DATABASE.ERROR` (bug). Message and data never contain SQL,
 * values or the SQLSTATE. The cause has them, for the log. An error that is not the database's
 * becomes a bug.
 */
export const translateDatabaseError = (error: unknown): AppError => {
  if (isAppError(error) || !isDatabaseError(error)) return toAppError(error);
  if (isTransientDatabaseError(error))
    return transient('LOG.UNAVAILABLE', 'the database cannot be reached or is too busy; try again', {
      cause: error,
    });
  const code = readCode(error);
  if (code === '42501')
    return bug('DATABASE.FORBIDDEN', 'this service lacks a grant in the database', { cause: error });
  if (code === '23505') {
    const { constraint } = error as { constraint?: string };
    return conflict('DATABASE.UNIQUE', 'a row with this key exists', { cause: error, data: { constraint } });
  }
  return bug('DATABASE.ERROR', 'the database refused a statement; the log line has the reason', {
    cause: error,
  });
};
