import { spawn } from 'node:child_process';
import { homedir } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { EffectiveSetting } from '@antiphon/config';
import { AppError } from '@antiphon/kernel';
import type { Command } from 'commander';
import type { ContextOf } from './output.js';

const scriptPath = (script: string): string =>
  fileURLToPath(new URL(`../../../tools/bootstrap/${script}.cjs`, import.meta.url));

/** Runs a bootstrap script in this terminal. Rejects unless it exits with 0. */
const runScript = (script: 'start' | 'stop', args: readonly string[]): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [scriptPath(script), ...args], { stdio: 'inherit' });
    // The terminal also sends Ctrl-C to the child, which shuts down in order: wait for it.
    process.on('SIGINT', () => undefined);
    child.once('error', reject);
    child.once('exit', (code) =>
      code === 0
        ? resolve()
        : reject(new AppError('bug', 'CLI.STACK_FAILED', `npm ${script} failed; see its output above`)),
    );
  });

const UP_FLAGS = ['detach', 'compact', 'separate'] as const;
type UpOptions = Partial<Record<(typeof UP_FLAGS)[number], boolean>> & { readonly scale?: string };

/** Adds `antiphon up` and `antiphon down`: `npm start` and `npm stop`. */
export const addStack = (program: Command, context: ContextOf): void => {
  program
    .command('up')
    .description('start engines and services, as `npm start` does')
    .option('--detach', 'return once the stack is ready')
    .option('--compact', 'run memory and metering in the process of the agent, for small machines')
    .option('--separate', 'no effect: each service has a process of its own')
    .option('--scale <services>', 'processes per service, such as gateway=3,agent=2')
    .addHelpText('after', '\nExample:\n  antiphon up --detach --scale gateway=2')
    .action(async (options: UpOptions, command: Command) => {
      const scale = options.scale === undefined ? [] : ['--scale', options.scale];
      const flags = UP_FLAGS.filter((name) => options[name] === true).map((name) => `--${name}`);
      await runScript('start', [...flags, ...scale]);
      const { output } = context(command);
      if (options.detach && output.json) output.result({ started: true }, '');
    });
  program
    .command('down')
    .description('stop engines and services gracefully, as `npm stop` does')
    .addHelpText('after', '\nExample:\n  antiphon down')
    .action(async (_: unknown, command: Command) => {
      await runScript('stop', []);
      const { output } = context(command);
      if (output.json) output.result({ stopped: true }, '');
    });
};

/** Returns lines with a column for each key, value and origin. */
const settingLines = (settings: readonly EffectiveSetting[]): string => {
  const texts = settings.map(({ key, value, origin }) => ({
    key,
    value: value === null ? '-' : Array.isArray(value) ? value.join(', ') || '-' : String(value),
    origin,
  }));
  const rows = [{ key: 'KEY', value: 'VALUE', origin: 'ORIGIN' }, ...texts];
  const width = Math.max(...rows.map(({ key }) => key.length));
  return rows
    .map(({ key, value, origin }) => `${key.padEnd(width)}  ${origin.padEnd('environment'.length)}  ${value}`)
    .join('\n');
};

/** Adds `antiphon config check` and `antiphon config show`. */
export const addConfig = (program: Command, context: ContextOf): void => {
  const config = program.command('config').description('check and show antiphon.toml');
  config
    .command('check')
    .description('read the configuration as a start does, and report its errors and warnings')
    .addHelpText('after', '\nExample:\n  ANTIPHON_CONFIG=./production.toml antiphon config check')
    .action(async (_: unknown, command: Command) => {
      const { loadConfig, redactedConfig } = await import('@antiphon/config');
      const { output, env, cwd } = context(command);
      const loaded = loadConfig({ env, cwd, homeDir: env['HOME'] ?? homedir() });
      const warnings = loaded.warnings.map((warning) => `warning: ${warning}`);
      const summary = `${loaded.source ?? 'built-in defaults'}: ok, ${loaded.agents.length} agents, ${loaded.providers.length} providers, ${loaded.plugins.length} plug-ins`;
      output.result({ ok: true, config: redactedConfig(loaded) }, [...warnings, summary].join('\n'));
    });
  config
    .command('show')
    .description('print every setting with its origin; of a secret only whether it is set')
    .option('--workspace <id>', 'workspace whose agents, plug-ins and limits are shown', 'default')
    .addHelpText('after', '\nExample:\n  antiphon config show --json')
    .action(async ({ workspace }: { workspace: string }, command: Command) => {
      const { effectiveSettings, loadConfig } = await import('@antiphon/config');
      const { output, env, cwd } = context(command);
      const loaded = loadConfig({ env, cwd, homeDir: env['HOME'] ?? homedir(), requireKeys: false });
      const settings = effectiveSettings(loaded, workspace);
      output.result({ source: loaded.source, settings }, settingLines(settings));
    });
};
