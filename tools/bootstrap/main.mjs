import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { runTests } from './run-tests.mjs';
import { prepare } from './prepare.mjs';
import { createProgress } from './progress.mjs';
import { bundledNode, cacheFolder, homeFolder, projectRoot } from './project.mjs';
import { stopStack } from './stop-stack.mjs';
import { UserError } from './user-error.mjs';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];
const SIGNAL_EXIT = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };

/** The first signal stops what is under way in an orderly manner. */
const abortOnSignal = () => {
  const controller = new AbortController();
  const handlers = SIGNALS.map((name) => [
    name,
    () => controller.abort(new UserError(`stopped by ${name}`, { exitCode: SIGNAL_EXIT[name] })),
  ]);
  for (const [name, handler] of handlers) process.on(name, handler);
  return {
    signal: controller.signal,
    dispose: () => handlers.forEach(([name, handler]) => process.off(name, handler)),
  };
};

const context = (env = process.env) => ({
  root: projectRoot,
  cache: cacheFolder(env),
  home: homeFolder(env),
  env,
});

const prepareAll = async (progress) => {
  if (!['linux', 'darwin'].includes(process.platform)) {
    throw new UserError('Antiphon runs on Linux and macOS; on Windows, run it inside WSL 2');
  }
  const stop = abortOnSignal();
  try {
    await prepare({ ...context(), signal: stop.signal }, progress);
    stop.signal.throwIfAborted();
  } finally {
    stop.dispose();
  }
};

/** Runs a program of ours on the bundled Node, with our terminal; resolves to its exit code. */
export const runBundled = (args, env = process.env) =>
  new Promise((resolve, reject) => {
    const child = spawn(bundledNode(), args, { stdio: 'inherit', env });
    // Ctrl-C reaches the child by itself; it decides when this ends.
    for (const name of SIGNALS) process.on(name, () => name !== 'SIGINT' && child.kill(name));
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(signal === null ? code : (SIGNAL_EXIT[signal] ?? 1)));
  });

const start = async (args, progress) => {
  await prepareAll(progress);
  return runBundled([join(projectRoot, 'tools/stack/dist/main.js'), 'up', ...args]);
};

const stop = async (_args, progress) => {
  const { wasRunning } = await stopStack(homeFolder(), progress.note);
  console.log(wasRunning ? 'stopped' : `nothing is running in ${homeFolder()}`);
  return 0;
};

const test = async (args, progress) => {
  await prepareAll(progress);
  return runTests(args, runBundled);
};

const chaos = async (args, progress) => {
  await prepareAll(progress);
  return runBundled([join(projectRoot, 'tools/chaos/run.mjs'), ...args]);
};

const COMMANDS = { start, stop, test, 'run chaos': chaos };

/** Runs one of the commands and sets the process's exit code; a UserError's message is printed without a stack. */
export const main = async (command, args) => {
  const progress = createProgress((line) => console.log(line));
  try {
    process.exitCode = await COMMANDS[command](args, progress);
  } catch (error) {
    console.error(error instanceof UserError ? `antiphon: ${error.message}` : error);
    process.exitCode = error instanceof UserError ? error.exitCode : 1;
  }
};
