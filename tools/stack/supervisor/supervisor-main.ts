import { createLogger } from '@antiphon/observability';
import { processChannel } from './channel.js';
import type { SupervisorArguments } from './messages.js';
import { runSupervisor } from './run-supervisor.js';

const logger = createLogger({ service: 'supervisor' });
const channel = processChannel();

/** Its children are found and ended by whoever comes next (`npm stop`, `npm start`). */
const fail = (error: unknown): void => {
  logger.fatal({ err: error }, 'the supervisor failed');
  process.exit(1);
};
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

const args = JSON.parse(process.argv[2] ?? '{}') as SupervisorArguments;
const exitCode = await runSupervisor(args, channel, logger);
channel.close();
process.exit(exitCode);
