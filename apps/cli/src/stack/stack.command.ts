import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { AppError } from '@antiphon/kernel';
import type { Command } from 'commander';
import type { ContextOf } from '../command-context.js';

const bootstrap = (script: string): string =>
  fileURLToPath(new URL(`../../../../tools/bootstrap/${script}.cjs`, import.meta.url));

/** Runs a command of the bootstrap with our own terminal; its exit code is ours. */
const run = (script: 'start' | 'stop', args: readonly string[]): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [bootstrap(script), ...args], { stdio: 'inherit' });
    // Ctrl-C reaches the child through the terminal; it stops in order, and we wait for it.
    process.on('SIGINT', () => undefined);
    child.once('error', reject);
    child.once('exit', (code) =>
      code === 0
        ? resolve()
        : reject(new AppError('bug', 'CLI.STACK_FAILED', `npm ${script} failed; what it printed tells why`)),
    );
  });

/** `antiphon up` and `antiphon down`: `npm start` and `npm stop`. */
export const addStack = (program: Command, context: ContextOf): void => {
  program
    .command('up')
    .description('start engines and services, as `npm start` does')
    .option('--detach', 'return once the stack is ready')
    .option('--scale <services>', 'several of one, such as gateway=3,agent=2')
    .addHelpText('after', '\nExample:\n  antiphon up --detach --scale gateway=2')
    .action(async (options: { detach?: boolean; scale?: string }, command: Command) => {
      const scale = options.scale === undefined ? [] : ['--scale', options.scale];
      await run('start', [...(options.detach ? ['--detach'] : []), ...scale]);
      const { output } = context(command);
      if (options.detach && output.json) output.result({ started: true }, '');
    });
  program
    .command('down')
    .description('stop all of it gracefully, as `npm stop` does')
    .addHelpText('after', '\nExample:\n  antiphon down')
    .action(async (_: unknown, command: Command) => {
      await run('stop', []);
      const { output } = context(command);
      if (output.json) output.result({ stopped: true }, '');
    });
};
