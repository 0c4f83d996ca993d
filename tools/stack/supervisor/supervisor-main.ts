import { createLogger } from '@antiphon/observability';
import { endAllChildren } from '../process/child-process.js';
import { processChannel } from './channel.js';
import type { SupervisorArguments } from './messages.js';
import { runSupervisor } from './run-supervisor.js';

const logger = createLogger({ service: 'supervisor' });
const channel = processChannel();

/** A bug of ours must not leave engines running; what does not end now, whoever comes next finds and ends. */
const fail = (error: unknown): void => {
  logger.fatal({ err: error }, 'the supervisor failed');
  endAllChildren();
  process.exit(1);
};
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

const args = JSON.parse(process.argv[2] ?? '{}') as SupervisorArguments;
const exitCode = await runSupervisor(args, channel, logger);
channel.close();
process.exit(exitCode);
