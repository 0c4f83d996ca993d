import { toAppError } from '@antiphon/kernel';
import { configProblems, renderConfigErrors } from '@antiphon/config';
import { createLogger } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import { startService } from './start-service.js';
import type { RunningService, StartOptions } from './start-service.js';

/** Longer than any request may take; then whoever supervises us would kill us anyway. */
const STOP_DEADLINE_MS = 15_000;

const exitOnFailure = (logger: Logger): void => {
  const fail = (what: string) => (error: unknown) => {
    logger.fatal({ err: error }, what);
    // State may be broken in ways that nobody foresaw; the log has everything that was acknowledged.
    process.exit(1);
  };
  process.on('uncaughtException', fail('an error was caught by nobody'));
  process.on('unhandledRejection', fail('a rejection was handled by nobody'));
};

const stopOnce = (running: RunningService): ((reason: string) => void) => {
  const { logger } = running.platform;
  let stopping = false;
  return (reason) => {
    if (stopping) return;
    stopping = true;
    logger.info({ reason }, 'stopping');
    setTimeout(() => {
      logger.error('the service did not stop in time');
      process.exit(1);
    }, STOP_DEADLINE_MS).unref();
    running.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        logger.error({ err: error }, 'the service did not stop cleanly');
        process.exit(1);
      },
    );
  };
};

const stopWithProcess = (running: RunningService): void => {
  const stop = stopOnce(running);
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
  // The supervisor is gone without a word: a service that nobody watches must not linger.
  process.on('disconnect', () => stop('the supervisor is gone'));
  void running.platform.nats.closed.then((error) => {
    if (error === undefined) return;
    running.platform.logger.fatal({ err: error }, 'the connection to NATS was closed for good');
    process.exit(1);
  });
};

const reportFailedStart = (logger: Logger, error: unknown): void => {
  if (configProblems(error).length > 0) logger.fatal(renderConfigErrors(error));
  else logger.fatal({ err: toAppError(error) }, 'the service could not start');
};

/**
 * Runs a service as this process: starts it, tells the supervisor (`{type:'ready', port}` over IPC when there is one),
 * drains on SIGTERM and SIGINT and exits 0; exits 1 when the start fails or an error reaches nobody.
 */
export const runService = async (definition: Omit<StartOptions, 'cwd'>): Promise<void> => {
  const bootLogger = createLogger({ service: definition.service });
  exitOnFailure(bootLogger);
  try {
    const running = await startService({ ...definition, cwd: process.cwd() });
    stopWithProcess(running);
    running.platform.logger.info({ host: running.host, port: running.port }, 'ready');
    process.send?.({ type: 'ready', port: running.port });
  } catch (error) {
    reportFailedStart(bootLogger, error);
    process.exit(1);
  }
};
