import { createLogger } from '@antiphon/observability';
import { signalAllChildren } from '../process/child-process.js';
import { processChannel } from './messages.js';
import type { SupervisorArguments } from './messages.js';
import { runSupervisor } from './run-supervisor.js';

const logger = createLogger({ service: 'supervisor' });
const channel = processChannel();

/** Stops all children after an unexpected error. The next start ends those that remain. */
const fail = (error: unknown): void => {
  logger.fatal({ err: error }, 'supervisor failed');
  signalAllChildren();
  process.exit(1);
};
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

const args = JSON.parse(process.argv[2] ?? '{}') as SupervisorArguments;
const exitCode = await runSupervisor(args, channel, logger);
channel.close();
process.exit(exitCode);
