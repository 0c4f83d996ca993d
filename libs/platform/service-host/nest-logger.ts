import type { LoggerService } from '@nestjs/common';
import type { Logger } from '@antiphon/observability';

const text = (message: unknown): string => (typeof message === 'string' ? message : 'Nest');
const fields = (message: unknown, rest: readonly unknown[]): object => ({
  ...(message instanceof Error ? { err: message } : typeof message === 'object' ? { nest: message } : {}),
  ...(rest.length > 0 ? { context: rest.at(-1) } : {}),
});

/** Nest's own messages as our lines; what Nest says in passing about its routes and modules is debugging. */
export const nestLogger = (logger: Logger): LoggerService => ({
  log: (message: unknown, ...rest: unknown[]) => logger.debug(fields(message, rest), text(message)),
  debug: (message: unknown, ...rest: unknown[]) => logger.debug(fields(message, rest), text(message)),
  verbose: (message: unknown, ...rest: unknown[]) => logger.trace(fields(message, rest), text(message)),
  warn: (message: unknown, ...rest: unknown[]) => logger.warn(fields(message, rest), text(message)),
  error: (message: unknown, ...rest: unknown[]) => logger.error(fields(message, rest), text(message)),
  fatal: (message: unknown, ...rest: unknown[]) => logger.fatal(fields(message, rest), text(message)),
});
