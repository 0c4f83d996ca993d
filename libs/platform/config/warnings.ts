import { lstatSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, sep } from 'node:path';
import type { AntiphonConfig, PluginConfig } from './antiphon-config.js';
import { configError } from './config-problem.js';
import type { ConfigProblem } from './config-problem.js';
import { BUNDLED_PLUGINS, NATIVE_TOOLS } from './native-tools.js';
import { matchesTool } from './tool-names.js';
import { errorCode, isMissing } from './config-problem.js';
import { findNearest } from './find-nearest.js';

/**
 * Inspects a plug-in's path. A link may only point below its own folder, as in mounted volumes. A
 * path below the folder of the configuration stays there, also through links of folders.
 */
const inspectPlugin = ({ path }: PluginConfig, source: string | null): 'file' | 'missing' | string => {
  if (path === null) return 'file';
  try {
    const base = source === null ? null : dirname(source);
    if (
      base !== null &&
      path.startsWith(base + sep) &&
      !realpathSync(path).startsWith(realpathSync(base) + sep)
    )
      return 'is behind a link that leads out of the folder of the configuration';
    if (lstatSync(path).isSymbolicLink()) {
      const folder = realpathSync(dirname(path)) + sep;
      if (!realpathSync(path).startsWith(folder))
        return 'is a link that points out of its folder, not a regular file';
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

/** Warns about a token in a file that other users may read. Windows has no such modes. */
const modeWarnings = ({ source, gateway }: AntiphonConfig): string[] => {
  if (source === null || gateway.token === null || process.platform === 'win32') return [];
  const mode = statSync(source).mode & 0o777;
  return (mode & 0o077) === 0
    ? []
    : [`${source} holds gateway.token and is readable by others (mode ${mode.toString(8)}); chmod 600 it`];
};

/** Warns about certificates that no provider call can read. */
const certificateWarnings = ({ providers }: AntiphonConfig): string[] =>
  providers.flatMap(({ name, caFile }) => {
    if (caFile === undefined) return [];
    try {
      if (readFileSync(caFile, 'utf8').includes('-----BEGIN CERTIFICATE-----')) return [];
      return [`provider ${name}: ca_file ${caFile} holds no certificate in PEM form, so that its calls fail`];
    } catch (error) {
      return [
        `provider ${name}: ca_file ${caFile} cannot be read (${errorCode(error)}), so that its calls fail`,
      ];
    }
  });

/** Returns warnings about files. Throws `CONFIG.INVALID` if a plug-in is not a regular file. */
export const fileWarnings = (config: AntiphonConfig): readonly string[] => {
  const found = config.plugins.map((plugin) => ({ plugin, state: inspectPlugin(plugin, config.source) }));
  const problems = found.flatMap(({ plugin, state }, index) =>
    state === 'file' || state === 'missing' ? [] : [problem(config, index, plugin.name, state)],
  );
  if (problems.length > 0) throw configError('invalid', problems);
  return [
    ...modeWarnings(config),
    ...certificateWarnings(config),
    ...found
      .filter(({ state }) => state === 'missing')
      .map(
        ({ plugin }) =>
          `plug-in ${plugin.name}: ${plugin.path} does not exist; the start continues without it`,
      ),
  ];
};

/** Name of a tool of an MCP server. Clients add servers at run time. */
const MCP_TOOL = /^mcp__/;

/**
 * Warns about tools that no plug-in provides. Only a file without plug-ins can be checked, because
 * the tools of a module are known when it is loaded.
 */
export const toolWarnings = ({ agents, plugins }: AntiphonConfig): readonly string[] => {
  if (plugins.length > 0) return [];
  const known = [...BUNDLED_PLUGINS, ...NATIVE_TOOLS];
  return agents.flatMap(({ id, tools }) =>
    tools
      .filter((tool) => !known.some((name) => matchesTool(tool, name)) && !MCP_TOOL.test(tool))
      .map((tool) => {
        const nearest = findNearest(tool, known);
        const hint = nearest === null ? '' : `; did you mean ${nearest}?`;
        return `agent ${id} may call the tool ${tool}, which no plug-in has${hint}`;
      }),
  );
};
