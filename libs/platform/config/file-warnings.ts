import { lstatSync, realpathSync, statSync } from 'node:fs';
import { dirname, sep } from 'node:path';
import type { AntiphonConfig, PluginConfig } from './antiphon-config.js';
import { configError } from './config-problem.js';
import type { ConfigProblem } from './config-problem.js';
import { errorCode, isMissing } from './error-code.js';

/** What stands at a plug-in's path. A link may only lead to a file below its own folder (as mounted volumes do). */
const inspectPlugin = ({ path }: PluginConfig): 'file' | 'missing' | string => {
  if (path === null) return 'file';
  try {
    if (lstatSync(path).isSymbolicLink()) {
      const folder = realpathSync(dirname(path)) + sep;
      if (!realpathSync(path).startsWith(folder))
        return 'is a link that leads out of its folder, not a regular file';
    }
    return statSync(path).isFile() ? 'file' : 'is not a regular file';
  } catch (error) {
    return isMissing(error) ? 'missing' : `cannot be inspected (${errorCode(error)})`;
  }
};

const problem = (config: AntiphonConfig, index: number, name: string, what: string): ConfigProblem => ({
  file: config.source,
  line: null,
  column: null,
  key: `plugins[${index}].path`,
  message: `the module of plug-in ${JSON.stringify(name)} ${what}`,
  expected: 'a regular file',
  example: 'path = "plugins/weather.wasm"',
  nearest: null,
  related: null,
});

/** A secret in a file that others may read. Windows has no such modes. */
const modeWarnings = ({ source, gateway }: AntiphonConfig): string[] => {
  if (source === null || gateway.token === null || process.platform === 'win32') return [];
  const mode = statSync(source).mode & 0o777;
  return (mode & 0o077) === 0
    ? []
    : [`${source} holds gateway.token and is readable by others (mode ${mode.toString(8)}); chmod 600 it`];
};

/** What the file system says about a configuration: warnings, or `CONFIG.INVALID` for a plug-in that is no regular file. */
export const fileWarnings = (config: AntiphonConfig): readonly string[] => {
  const found = config.plugins.map((plugin) => ({ plugin, state: inspectPlugin(plugin) }));
  const problems = found.flatMap(({ plugin, state }, index) =>
    state === 'file' || state === 'missing' ? [] : [problem(config, index, plugin.name, state)],
  );
  if (problems.length > 0) throw configError('invalid', problems);
  return [
    ...modeWarnings(config),
    ...found
      .filter(({ state }) => state === 'missing')
      .map(
        ({ plugin }) => `plug-in ${plugin.name}: ${plugin.path} does not exist; the start goes on without it`,
      ),
  ];
};
