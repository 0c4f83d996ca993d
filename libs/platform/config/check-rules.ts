import { isIPv4 } from 'node:net';
import { isAbsolute, normalize } from 'node:path';
import { checkProgram } from './check-program.js';
import { checkPolicies } from './check-policy.js';
import { checkMcpServers, mcpServersOf } from './check-mcp.js';
import { checkChannels } from './check-channels.js';
import { checkWorkspaces } from './check-workspaces.js';
import { CAPABILITY_FORMS, parseCapability } from './capability.js';
import { baseUrlProblem, isProxySetting } from './check-provider-url.js';
import type { KeyPath } from './config-problem.js';
import { isSet } from './build-config.js';
import type { Environment } from './build-config.js';
import { findNearest } from './find-nearest.js';
import { coversTool, matchesTool } from './tool-names.js';
import { entriesOf, tableOf, textOf, textsOf } from './problem-list.js';
import type { Entry, ProblemList } from './problem-list.js';
import { BUNDLED_PLUGINS } from './native-tools.js';
import { PROVIDER_FACTS, factsOfKind } from './provider-kinds.js';
import type { ProviderKind } from './provider-kinds.js';
import type { TomlData } from './toml-value.js';

type File = Readonly<Record<string, TomlData>>;

const quote = (name: string): string => JSON.stringify(name);

const checkUnique = (list: ProblemList, entries: readonly Entry[], key: string, what: string): void => {
  const seen = new Map<string, Entry>();
  for (const entry of entries) {
    const name = textOf(entry.table, key);
    const first = name === null ? undefined : seen.get(name);
    if (name !== null && first === undefined) seen.set(name, entry);
    if (name !== null && first !== undefined)
      list.add([...entry.path, key], {
        message: `a second ${what} ${quote(name)}`,
        expected: `a different ${key} for each ${what}`,
        example: null,
        related: [...first.path, key],
      });
  }
};

const checkExists = (
  list: ProblemList,
  path: readonly (string | number)[],
  name: string | null,
  known: readonly string[],
  what: string,
): void => {
  if (name === null || known.includes(name)) return;
  list.add(path, {
    message: `unknown ${what} ${quote(name)}`,
    expected: known.length === 0 ? `a configured ${what}` : `one of ${known.join(', ')}`,
    nearest: findNearest(name, known),
  });
};

const namesOf = (entries: readonly Entry[], key: string): readonly string[] => [
  ...new Set(entries.flatMap(({ table }) => textOf(table, key) ?? [])),
];

/**
 * Checks that each agent names a known provider. Without `[[providers]]` only the built-in one is
 * known.
 */
const checkAgents = (list: ProblemList, file: File, builtInProvider: string): void => {
  const providers = entriesOf(file, 'providers');
  const known = providers.length === 0 ? [builtInProvider] : namesOf(providers, 'name');
  for (const { table, path } of entriesOf(file, 'agents')) {
    checkExists(list, [...path, 'provider'], textOf(table, 'provider'), known, 'provider');
    const fallback = textOf(tableOf(table, 'fallback'), 'provider');
    checkExists(list, [...path, 'fallback', 'provider'], fallback, known, 'provider');
  }
};

/**
 * Checks that each rule names a tool of its agent. A rule for another tool would leave the intended
 * one without an approval or a limit.
 */
const checkToolRules = (
  list: ProblemList,
  file: File,
  { key, what }: { readonly key: 'approvals' | 'tool_limits'; readonly what: string },
): void => {
  for (const agent of entriesOf(file, 'agents')) {
    const rules = entriesOf(agent.table, key).map((entry) => {
      return { ...entry, path: [...agent.path, ...entry.path] };
    });
    checkUnique(list, rules, 'tool', `${what} for the tool`);
    const tools = ['*', ...textsOf(agent.table, 'tools')];
    for (const { table, path } of rules) {
      const tool = textOf(table, 'tool') ?? '';
      const isNamed = coversTool(tools.slice(1), tool) || tools.some((name) => matchesTool(tool, name));
      if (!isNamed) checkExists(list, [...path, 'tool'], textOf(table, 'tool'), tools, 'tool');
    }
  }
};

const SELECTORS = ['channel', 'account', 'peer', 'guild', 'team'] as const;

const checkBindings = (list: ProblemList, file: File, agents: readonly string[]): void => {
  const seen = new Map<string, Entry>();
  for (const entry of entriesOf(file, 'bindings')) {
    checkExists(list, [...entry.path, 'agent'], textOf(entry.table, 'agent'), agents, 'agent');
    const present = SELECTORS.filter((key) => entry.table[key] !== undefined);
    if (present.length === 0)
      list.add(entry.path, {
        message: 'a binding that selects nothing',
        expected: `at least one of ${SELECTORS.join(', ')}; messages without a binding go to the first agent`,
        example: 'channel = "telegram"',
      });
    const id = JSON.stringify([...SELECTORS, 'workspace'].map((key) => textOf(entry.table, key)));
    const first = seen.get(id);
    if (first === undefined) seen.set(id, entry);
    else if (present.length > 0)
      list.add(entry.path, {
        message: 'a second binding for the same place',
        expected: `one binding for each combination of ${SELECTORS.join(', ')}`,
        example: null,
        related: first.path,
      });
  }
};

/** Checks names that must be unique and names that must exist. */
export const checkReferences = (
  list: ProblemList,
  file: File,
  builtIn: { readonly provider: string; readonly agent: string },
): void => {
  const agents = entriesOf(file, 'agents');
  checkUnique(list, entriesOf(file, 'providers'), 'name', 'provider');
  checkUnique(list, agents, 'id', 'agent');
  checkUnique(list, entriesOf(file, 'plugins'), 'name', 'plug-in');
  const mcpServers = mcpServersOf(file);
  checkUnique(list, mcpServers, 'name', 'MCP server');
  checkUnique(list, entriesOf(file, 'channels'), 'name', 'channel');
  checkChannels(list, file);
  const budgets = entriesOf(tableOf(file, 'budgets'), 'workspaces');
  const below = budgets.map(({ table, path }) => ({ table, path: ['budgets', ...path] }));
  checkUnique(list, below, 'workspace', 'budget of the workspace');
  checkAgents(list, file, builtIn.provider);
  checkToolRules(list, file, { key: 'approvals', what: 'approval rule' });
  checkToolRules(list, file, { key: 'tool_limits', what: 'limit' });
  checkWorkspaces(list, file);
  checkBindings(list, file, agents.length === 0 ? [builtIn.agent] : namesOf(agents, 'id'));
};

/** Returns true if a host to listen on is reachable only from this machine. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'));

const checkGateway = (list: ProblemList, file: File): void => {
  const gateway = tableOf(file, 'gateway');
  const host = textOf(gateway, 'host');
  if (host === null || isLoopback(host) || gateway['token'] !== undefined) return;
  if (gateway['loopback_without_token'] === false) return;
  list.add(['gateway', 'host'], {
    message: `${JSON.stringify(host)} is reachable from other machines, but no token is configured`,
    expected: 'a token, a loopback host, or loopback_without_token = false with API keys',
    example: 'token = "the-output-of-openssl-rand-hex-32"',
  });
};

/** Checks the base_url of a scripted provider: the file or folder of a scenario. */
const checkScenarioUrl = (list: ProblemList, path: KeyPath, url: string | null): void => {
  if (url === null || /^file:./.test(url)) return;
  list.add([...path, 'base_url'], {
    message: 'not a file: URL; a provider of kind scripted plays a scenario from a file',
    expected: 'file: and the path of a scenario, or of a folder of them with a slash at its end',
    example: 'base_url = "file:scenarios/demo.json"',
  });
};

const checkProviderUrl = (list: ProblemList, path: KeyPath, table: File, kind: string): void => {
  const url = textOf(table, 'base_url');
  if (kind === 'scripted') return checkScenarioUrl(list, path, url);
  const facts = factsOfKind(kind);
  if (kind === 'cli') return checkProgram(list, path, table);
  const needsUrl = facts !== null && facts.adapter !== null && facts.baseUrl === null;
  if (url === null && needsUrl && table['base_url'] === undefined)
    list.add([...path, 'base_url'], { message: `missing; the kind ${kind} has no address of its own` });
  const problem = url === null ? null : baseUrlProblem(url);
  if (problem !== null) list.add([...path, 'base_url'], problem);
};

const checkProxy = (list: ProblemList, path: KeyPath, table: File): void => {
  const proxy = textOf(table, 'proxy');
  if (proxy !== null && !isProxySetting(proxy))
    list.add([...path, 'proxy'], { message: 'not the URL of an http or https proxy (not shown)' });
};

/** Checks URLs, kinds and keys. `env` is null in a process that calls no provider. */
const checkProviders = (list: ProblemList, file: File, env: Environment | null): void => {
  for (const { table, path } of entriesOf(file, 'providers')) {
    const kind = textOf(table, 'kind') ?? '';
    checkProviderUrl(list, path, table, kind);
    checkProxy(list, path, table);
    const facts = factsOfKind(kind);
    if (facts?.adapter === null)
      list.add([...path, 'kind'], { message: `the kind ${kind} is not available in this version` });
    const configured = textOf(table, 'api_key_env');
    const variable = configured ?? facts?.keyVariable ?? null;
    if (table['stored_key'] === true) continue;
    if (env === null || variable === null || !/^\w{1,128}$/.test(variable) || isSet(env, variable)) continue;
    list.add(configured === null ? path : [...path, 'api_key_env'], {
      message: `the environment variable ${variable}, which holds this provider's key, is not set`,
      expected: `${variable} in the environment, or api_key_env with the name of another variable`,
      example: `export ${variable}=…`,
    });
  }
};

const checkModels = (
  list: ProblemList,
  file: File,
  kindOf: (provider: string | null) => ProviderKind | null,
): void => {
  for (const { table, path } of entriesOf(file, 'agents')) {
    const kind = kindOf(textOf(table, 'provider'));
    if (table['model'] === undefined && kind !== null && PROVIDER_FACTS[kind].defaultModel === null)
      list.add([...path, 'model'], { message: `missing; a provider of kind ${kind} has no default model` });
  }
};

const checkCapabilities = (list: ProblemList, file: File): void => {
  for (const { table, path } of entriesOf(file, 'plugins'))
    textsOf(table, 'capabilities').forEach((text, index) => {
      const parsed = parseCapability(text);
      if (!parsed.ok)
        list.add([...path, 'capabilities', index], {
          message: parsed.message,
          nearest: parsed.nearest ?? null,
          expected: `a capability: ${CAPABILITY_FORMS}`,
          example: 'capabilities = ["http:api.example.com/v1", "store:notes"]',
        });
    });
};

/** Returns whether a relative path leads out of the folder that it starts from. */
const leavesFolder = (path: string): boolean => {
  if (isAbsolute(path) || path.startsWith('~')) return false;
  const [first] = normalize(path.replaceAll('\\', '/')).split('/');
  return first === '..';
};

const checkPluginPaths = (list: ProblemList, file: File): void => {
  for (const { table, path } of entriesOf(file, 'plugins')) {
    if (leavesFolder(textOf(table, 'path') ?? ''))
      list.add([...path, 'path'], {
        message: 'leads out of the folder of this file; use a path below it, or an absolute one',
        expected: 'the path of a WebAssembly module',
        example: 'path = "plugins/weather.wasm"',
      });
    if (table['path'] === undefined && !BUNDLED_PLUGINS.includes(textOf(table, 'name') ?? ''))
      list.add([...path, 'path'], {
        message: `missing; only a bundled plug-in (${BUNDLED_PLUGINS.join(', ')}) needs none`,
      });
  }
};

/** Checks rules that the schema cannot express. */
export const checkRules = (
  list: ProblemList,
  file: File,
  context: {
    readonly env: Environment | null;
    readonly kindOf: (provider: string | null) => ProviderKind | null;
  },
): void => {
  checkGateway(list, file);
  checkProviders(list, file, context.env);
  checkModels(list, file, context.kindOf);
  checkCapabilities(list, file);
  checkPolicies(list, file);
  checkPluginPaths(list, file);
  checkMcpServers(list, file);
};
