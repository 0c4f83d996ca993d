import { translateDatabaseError } from '@antiphon/database';
import { bug, conflict, isAppError, toAppError, transient, type AppError } from '@antiphon/kernel';

/** Codes of Prisma after which a retry may succeed: connection, timeout, pool, deadlock. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set([
  'P1001',
  'P1002',
  'P1008',
  'P1011',
  'P1017',
  'P2024',
  'P2028',
  'P2034',
  'P2037',
]);
const UNIQUE = 'P2002';
const FORBIDDEN = 'P1010';

interface PrismaError {
  readonly code?: unknown;
  readonly cause?: unknown;
  readonly meta?: { readonly driverAdapterError?: { readonly cause?: unknown } };
}

/** Error of the server inside an error of the driver adapter, with its SQLSTATE as `code`. */
const serverErrorOf = (error: PrismaError): { readonly code: string } | undefined => {
  for (const cause of [error.cause, error.meta?.driverAdapterError?.cause]) {
    const { originalCode, code } = (cause ?? {}) as { originalCode?: unknown; code?: unknown };
    const found = originalCode ?? code;
    if (typeof found === 'string') return { code: found };
  }
  return undefined;
};

/**
 * Translates an error of Prisma Client to an AppError as `translateDatabaseError` does. The message
 * never contains SQL or values.
 */
export const translatePrismaError = (error: unknown): AppError => {
  if (isAppError(error)) return error;
  const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown };
  const isPrisma =
    typeof name === 'string' && (name.startsWith('PrismaClient') || name === 'DriverAdapterError');
  if (!isPrisma) return translateDatabaseError(error);
  if (code === UNIQUE) return conflict('DATABASE.UNIQUE', 'a row with this key exists', { cause: error });
  if (code === FORBIDDEN)
    return bug('DATABASE.FORBIDDEN', 'this service lacks a grant in the database', { cause: error });
  if (typeof code === 'string' && TRANSIENT_CODES.has(code))
    return transient('LOG.UNAVAILABLE', 'the database cannot be reached or is too busy; try again', {
      cause: error,
    });
  const server = serverErrorOf(error as PrismaError);
  if (server !== undefined) return translateDatabaseError(Object.assign(new Error(), server));
  return bug('DATABASE.ERROR', 'the database refused a statement; the log line has the reason', {
    cause: toAppError(error),
  });
};
