import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { needsChromium, prepareChromium } from './chromium.mjs';
import { ownEnvironment } from './own-environment.mjs';
import { prepare } from './prepare.mjs';
import { SIGNAL_EXIT, watchParent } from './processes.mjs';
import { createProgress } from './progress.mjs';
import { bundledNode, cacheFolder, homeFolder, projectRoot } from './project.mjs';
import { runTests } from './run-tests.mjs';
import { stopStack } from './stop-stack.mjs';
import { UserError } from './user-error.mjs';

const SIGNALS = /** @type {(keyof typeof SIGNAL_EXIT)[]} */ (Object.keys(SIGNAL_EXIT));

/** The terminal sends Ctrl-C to the child too, and a stack stops by force at a second SIGINT. */
const FORWARDED = /** @type {typeof SIGNALS} */ (SIGNALS.filter((name) => name !== 'SIGINT'));

/**
 * Installs, builds and fetches engines, then runs one more step, whose result it returns. A signal
 * stops the running steps in order.
 * @type {(progress: import('./types.js').Progress, more?: import('./types.js').PrepareChromium) => Promise<string | undefined>}
 */
const prepareAll = async (progress, more = async () => undefined) => {
  if (!['linux', 'darwin'].includes(process.platform))
    throw new UserError('Antiphon runs on Linux and macOS; on Windows, run it inside WSL 2');
  const controller = new AbortController();
  const abort = (name) =>
    controller.abort(new UserError(`stopped by ${name}`, { exitCode: SIGNAL_EXIT[name] }));
  for (const name of SIGNALS) process.on(name, abort);
  try {
    // Packages and the build are ours too; npm reads the proxy variables by itself.
    const env = ownEnvironment(process.env);
    const folders = { root: projectRoot, cache: cacheFolder(env), home: homeFolder(env) };
    const context = { ...folders, env, signal: controller.signal };
    await prepare(context, progress);
    const result = await more(context, progress);
    controller.signal.throwIfAborted();
    return result;
  } finally {
    for (const name of SIGNALS) process.off(name, abort);
  }
};

/** Runs a program on the bundled Node in this terminal. Resolves to its exit code. */
const runBundled = (args, env = process.env, { forwarded = FORWARDED } = {}) =>
  new Promise((resolve, reject) => {
    const child = spawn(bundledNode(), args, { stdio: 'inherit', env });
    // Without a listener, a signal would end this process before the child.
    for (const name of SIGNALS) process.on(name, () => forwarded.includes(name) && child.kill(name));
    child.once('error', reject);
    child.once('exit', (code, signal) =>
      resolve(signal === null ? code : (SIGNAL_EXIT[/** @type {keyof typeof SIGNAL_EXIT} */ (signal)] ?? 1)),
    );
  });

/** Runs Jest, which ends with this process, on each signal, and with the parent of this process. */
const runJest = (args, env) => {
  watchParent(() => process.kill(process.pid, 'SIGHUP'));
  return runBundled(args, env, { forwarded: SIGNALS });
};

const COMMANDS = {
  start: async (args, progress) => {
    await prepareAll(progress);
    const program = join(projectRoot, 'tools/stack/dist/main.js');
    return runBundled([program, 'up', ...args], ownEnvironment(process.env));
  },
  stop: async (_args, progress) => {
    const { wasRunning } = await stopStack(homeFolder(), progress.note);
    console.log(wasRunning ? 'stopped' : `nothing is running in ${homeFolder()}`);
    return 0;
  },
  'run setup': async (_args, progress) => {
    await prepareAll(progress);
    return 0;
  },
  test: async (args, progress) => {
    const chromium = await prepareAll(progress, needsChromium(args) ? prepareChromium : undefined);
    if (chromium !== undefined) process.env.ANTIPHON_CHROMIUM = chromium;
    return runTests(args, runJest);
  },
  'run chaos': async (args, progress) => {
    await prepareAll(progress);
    return runBundled([join(projectRoot, 'tools/chaos/run.mjs'), ...args]);
  },
};

/** Texts of `--help`. The chaos run and the tests have their own. */
const HELP = {
  start: `usage: npm start -- [--detach] [--compact] [--scale gateway=3,agent=2]

Installs, builds and fetches what is missing, then starts the engines and the services.

  --detach, -d   return once everything is ready; \`npm stop\` ends it
  --compact      run memory and metering in the process of the agent, for small machines
  --scale LIST   processes per service: gateway, agent, sandbox, metering, memory
  --help, -h     print this text, and exit

examples:
  npm start
  npm start -- --detach
  npm start -- --detach --scale gateway=3,agent=2`,
  stop: `usage: npm stop

Ends the services and the engines of this home in order. What was accepted continues after the next start.

example:
  npm stop`,
  'run setup': `usage: npm run setup

Installs, builds and fetches what \`npm start\` and \`npm test\` need, and starts nothing.

example:
  npm run setup`,
};

const wantsHelp = (args) => args.includes('--help') || args.includes('-h');

/** Runs a command and sets the exit code. Prints a UserError without its stack. */
export const main = async (command, args) => {
  // PostgreSQL runs as another user where this one is root, and reads what is built here.
  process.umask(0o022);
  const help = wantsHelp(args) ? HELP[command] : undefined;
  if (help !== undefined) return console.log(help);
  const progress = createProgress((line) => console.log(line));
  try {
    process.exitCode = await COMMANDS[command](args, progress);
  } catch (error) {
    console.error(error instanceof UserError ? `antiphon: ${error.message}` : error);
    process.exitCode = error instanceof UserError ? error.exitCode : 1;
  }
};
