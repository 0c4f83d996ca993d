import { createLogger, surviveOutputErrors } from '@antiphon/observability';
import { signalAllChildren } from '../process/child-process.js';
import { processChannel } from './messages.js';
import type { SupervisorArguments } from './messages.js';
import { runSupervisor } from './run-supervisor.js';

const logger = createLogger({ service: 'supervisor' });
const channel = processChannel();

/**
 * Whether the system refused an operation, as on a full disk. The supervisor continues then, since
 * its processes do not depend on what it could not read or write.
 */
const isSystemError = (error: unknown): boolean =>
  error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string';

/** Stops all children after an unexpected error. The next start ends those that remain. */
const fail = (error: unknown): void => {
  if (isSystemError(error)) return logger.error({ err: error }, 'supervisor error survived');
  logger.fatal({ err: error }, 'supervisor failed');
  signalAllChildren();
  process.exit(1);
};
surviveOutputErrors();
// PostgreSQL runs as another user where this one is root. Files of secrets have modes of their own.
process.umask(0o022);
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

const args = JSON.parse(process.argv[2] ?? '{}') as SupervisorArguments;
const exitCode = await runSupervisor(args, channel, logger);
channel.close();
process.exit(exitCode);
