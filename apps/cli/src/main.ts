import { createRequire } from 'node:module';
import { reachLoopbackDirectly } from '@antiphon/bootstrap/own-environment';
import { Command, CommanderError } from 'commander';
import { addAudit } from './audit/audit.command.js';
import { addRoots } from './audit/roots.command.js';
import { addBackup } from './backup/backup.command.js';
import { findGateway, type AddressOptions } from './connection/gateway-address.js';
import { openGateway } from './connection/gateway-http.js';
import { addAgent } from './gateway/agent.command.js';
import { addApprovals } from './gateway/approvals.command.js';
import { addChannel } from './gateway/channel.command.js';
import { addChat } from './gateway/chat.command.js';
import { addChats } from './gateway/chats.command.js';
import { addCredential } from './gateway/credential.command.js';
import { addSecret } from './gateway/secret.command.js';
import { addEvents } from './gateway/events.command.js';
import { addKey } from './gateway/key.command.js';
import { addLogRecords } from './gateway/log-records.command.js';
import { addMemory } from './gateway/memory.command.js';
import { addSearch } from './gateway/search.command.js';
import { addPlugin } from './gateway/plugin.command.js';
import { addTool } from './gateway/tool.command.js';
import { addBudget } from './gateway/budget.command.js';
import { addMessage } from './gateway/message.command.js';
import { addPlan } from './gateway/plan.command.js';
import { addRun } from './gateway/run.command.js';
import { addStatus } from './gateway/status.command.js';
import { addTask } from './gateway/task.command.js';
import { addWorkflow } from './gateway/workflow.command.js';
import { addWorkspace } from './gateway/workspace.command.js';
import { EXIT, createOutput, exitCodeOf, exitOnClosedPipe, type ContextOf } from './output.js';
import { addDlq } from './projections/dlq.command.js';
import { addProjections } from './projections/projections.command.js';
import { addFiles } from './session/files.command.js';
import { addProvider } from './provider.command.js';
import { addSession } from './session/session.command.js';
import { addConfig, addStack } from './stack.command.js';

// The `*.command.js` files only declare commands; their actions import libraries when they run.
// `--help` therefore loads commander and the declarations alone (startup.int.spec.ts).

type GlobalOptions = AddressOptions & { readonly json?: boolean };

const contextOf: ContextOf = (command) => {
  const options = command.optsWithGlobals<GlobalOptions>();
  const { env } = process;
  const cwd = process.cwd();
  const gateway = () => findGateway(options, env, cwd);
  return {
    output: createOutput(options.json === true),
    env,
    cwd,
    gateway,
    http: async () => openGateway(await gateway()),
  };
};

const COMMANDS = [
  addStack,
  addStatus,
  addChat,
  addChats,
  addChannel,
  addAgent,
  addTask,
  addPlan,
  addBudget,
  addMessage,
  addMemory,
  addSearch,
  addTool,
  addPlugin,
  addWorkflow,
  addRun,
  addApprovals,
  addKey,
  addWorkspace,
  addCredential,
  addSecret,
  addSession,
  addFiles,
  addEvents,
  addAudit,
  addRoots,
  addBackup,
  addLogRecords,
  addProjections,
  addDlq,
  addConfig,
  addProvider,
];

const { version } = createRequire(import.meta.url)('../package.json') as { readonly version: string };

const createProgram = (): Command => {
  const program = new Command('antiphon')
    .description('Work with a running Antiphon, or start one.')
    .version(version, '-V, --version', 'print the version of this command line')
    .option('--json', 'print one JSON document, or JSON lines, instead of text')
    .option('--url <url>', 'the gateway (default: ANTIPHON_URL, the running stack, the configuration)')
    .option(
      '--token <token>',
      'an API key or its token (default: ANTIPHON_TOKEN, the configuration, the admin key of this home)',
    )
    .addHelpText(
      'after',
      '\nExit codes: 0 done, 1 failed, 2 bad usage or configuration, 3 cannot reach the gateway, 4 refused, 5 audit: not signed.',
    )
    .exitOverride();
  for (const addCommand of COMMANDS) addCommand(program, contextOf);
  return program;
};

// Commander prints usage errors itself; --help and --version end with code 0.
const reportFailure = async (error: unknown): Promise<number> => {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  await createOutput(process.argv.includes('--json')).failure(error);
  return exitCodeOf(error);
};

exitOnClosedPipe();
reachLoopbackDirectly(process.env);

try {
  await createProgram().parseAsync(process.argv);
} catch (error) {
  process.exitCode = await reportFailure(error);
}
