import { homedir } from 'node:os';
import { loadConfig, redactedConfig } from '@antiphon/config';
import type { Command } from 'commander';
import type { ContextOf } from '../command-context.js';

/** `antiphon config check` */
export const addConfig = (program: Command, context: ContextOf): void => {
  const config = program.command('config').description('work with antiphon.toml');
  config
    .command('check')
    .description('read the configuration as a start would, and say what is wrong with it')
    .addHelpText('after', '\nExample:\n  ANTIPHON_CONFIG=./production.toml antiphon config check')
    .action((_: unknown, command: Command) => {
      const { output, env, cwd } = context(command);
      const loaded = loadConfig({ env, cwd, homeDir: env['HOME'] ?? homedir() });
      const warnings = loaded.warnings.map((warning) => `warning: ${warning}`);
      const summary = `${loaded.source ?? 'built-in defaults'}: ok, ${loaded.agents.length} agents, ${loaded.providers.length} providers, ${loaded.plugins.length} plug-ins`;
      output.result({ ok: true, config: redactedConfig(loaded) }, [...warnings, summary].join('\n'));
    });
};
