import { Command, CommanderError } from 'commander';
import { addApprovals } from './approvals/approvals.command.js';
import { addAudit } from './audit/audit.command.js';
import { addBackup } from './backup/backup.command.js';
import { addRestore } from './backup/restore.command.js';
import { addChat } from './chat/chat.command.js';
import type { ContextOf } from './command-context.js';
import { addConfig } from './config/config.command.js';
import { findGateway, type AddressOptions } from './connection/gateway-address.js';
import { addDlq } from './dlq/dlq.command.js';
import { addEvents } from './events/events.command.js';
import { EXIT, exitCodeOf } from './output/exit-codes.js';
import { createOutput } from './output/print.js';
import { addProjections } from './projections/projections.command.js';
import { addRun } from './run/run.command.js';
import { addSession } from './session/session.command.js';
import { addStack } from './stack/stack.command.js';
import { addStatus } from './status/status.command.js';
import { addWorkflow } from './workflow/workflow.command.js';

type GlobalOptions = AddressOptions & { readonly json?: boolean };

const contextOf: ContextOf = (command) => {
  const options = command.optsWithGlobals<GlobalOptions>();
  const { env } = process;
  const cwd = process.cwd();
  return {
    output: createOutput(options.json === true),
    env,
    cwd,
    gateway: () => findGateway(options, env, cwd),
  };
};

const createProgram = (): Command => {
  const program = new Command('antiphon')
    .description('Work with a running Antiphon, or start one.')
    .option('--json', 'one JSON document, or JSON lines, instead of text')
    .option('--url <url>', 'the gateway (default: ANTIPHON_URL, the running stack, the configuration)')
    .option('--token <token>', 'its token (default: ANTIPHON_TOKEN, the configuration)')
    .addHelpText(
      'after',
      '\nExit codes: 0 done, 1 failed, 2 bad usage or configuration, 3 cannot reach the gateway, 4 refused.',
    )
    .exitOverride();
  const all = [
    addStack,
    addStatus,
    addChat,
    addWorkflow,
    addRun,
    addApprovals,
    addSession,
    addEvents,
    addAudit,
    addBackup,
    addRestore,
    addProjections,
    addDlq,
    addConfig,
  ];
  for (const add of all) add(program, contextOf);
  return program;
};

// Commander reports usage itself; --help and --version end with code 0.
const codeOf = (error: unknown): number => {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  createOutput(process.argv.includes('--json')).failure(error);
  return exitCodeOf(error);
};

try {
  await createProgram().parseAsync(process.argv);
} catch (error) {
  process.exitCode = codeOf(error);
}
