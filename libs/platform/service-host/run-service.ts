import module from 'node:module';
import { toAppError } from '@antiphon/kernel';
import { configProblems, renderConfigErrors } from '@antiphon/config';
import { createLogger, surviveOutputErrors } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import type { Platform } from './platform.js';
import { startService } from './start-service.js';
import type { RunningService, StartOptions } from './start-service.js';

/**
 * Time limit of a shutdown: longer than any request. The supervisor would kill the process soon
 * after.
 */
const STOP_DEADLINE_MS = 15_000;

/** Ignores SIGHUP: a service outlives its terminal, and reads its configuration at its start only. */
const ignoreHangup = (logger: Logger): void => {
  process.on('SIGHUP', () => logger.info({ signal: 'SIGHUP' }, 'signal ignored'));
};

const exitOnFailure = (logger: Logger): void => {
  const fail = (event: string) => (error: unknown) => {
    logger.fatal({ err: error }, event);
    // State may be inconsistent; the log has everything that was acknowledged.
    process.exit(1);
  };
  process.on('uncaughtException', fail('uncaught exception'));
  process.on('unhandledRejection', fail('unhandled rejection'));
};

const stopOnce = (running: RunningService): ((reason: string) => void) => {
  const { logger } = running.platform;
  let stopping = false;
  return (reason) => {
    if (stopping) return;
    stopping = true;
    logger.info({ reason }, 'stopping');
    setTimeout(() => {
      logger.error('shutdown timed out');
      process.exit(1);
    }, STOP_DEADLINE_MS).unref();
    running.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        logger.error({ err: error }, 'shutdown failed');
        process.exit(1);
      },
    );
  };
};

/** Ends the process when a connection of a service is lost for good. */
const exitWithConnections = ({ nats, databaseHold, logger }: Platform): void => {
  void nats.closed.then((error) => {
    if (error === undefined) return;
    logger.fatal({ err: error }, 'NATS connection closed for good');
    process.exit(1);
  });
  void databaseHold.lost.then((error) => {
    // The state in memory belongs to the replaced log.
    logger.fatal({ err: error }, 'database was restored, ending');
    process.exit(1);
  });
};

const stopWithProcess = (running: RunningService): void => {
  const stop = stopOnce(running);
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
  // The supervisor asks whether the event loop runs; also when all sockets are in use.
  process.on('message', (message: { readonly type?: unknown }) => {
    // The callback receives the failure of a channel that closes now.
    if (message.type === 'ping') process.send?.({ type: 'pong' }, undefined, undefined, () => undefined);
  });
  // The supervisor has died: an unsupervised service must not stay.
  process.on('disconnect', () => stop('the supervisor is gone'));
  for (const { platform } of [running, ...running.hosted]) exitWithConnections(platform);
};

/** Time after the start in which a process does nothing but its work, ms. */
const FLUSH_AFTER_MS = 2_000;

/**
 * Writes the compiled code of this process's modules to the folder of `NODE_COMPILE_CACHE`. Node
 * writes it at an orderly exit only, so the process after a killed one would compile them again.
 */
const keepCompiledCode = (): void => {
  // Node 20 has neither the cache nor this function.
  const { flushCompileCache }: Partial<typeof module> = module;
  if (flushCompileCache) setTimeout(flushCompileCache, FLUSH_AFTER_MS).unref();
};

const reportFailedStart = (logger: Logger, error: unknown): void => {
  if (configProblems(error).length > 0) logger.fatal(renderConfigErrors(error));
  else logger.fatal({ err: toAppError(error) }, 'the service could not start');
};

/**
 * Runs a service as this process. Sends `{type:'ready', port, hosted}` to the supervisor over IPC,
 * if there is one; `hosted` has the ports of the services in this process. Drains on SIGTERM
 * and SIGINT and exits 0; ignores SIGHUP. Exits 1 when the start fails or an error is uncaught.
 */
export const runService = async (definition: Omit<StartOptions, 'cwd'>): Promise<void> => {
  const bootLogger = createLogger({ service: definition.service });
  surviveOutputErrors();
  exitOnFailure(bootLogger);
  ignoreHangup(bootLogger);
  try {
    const running = await startService({ ...definition, cwd: process.cwd() });
    stopWithProcess(running);
    const { host, port, platform, hosted } = running;
    platform.logger.info({ host, port }, 'ready');
    const ports = Object.fromEntries(hosted.map((other) => [other.platform.identity.service, other.port]));
    process.send?.({ type: 'ready', port, hosted: ports }, undefined, undefined, () => undefined);
    keepCompiledCode();
  } catch (error) {
    reportFailedStart(bootLogger, error);
    process.exit(1);
  }
};
