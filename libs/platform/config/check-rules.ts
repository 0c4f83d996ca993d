import { isIPv4 } from 'node:net';
import type { ProviderKind } from './antiphon-config.js';
import { CAPABILITY_TYPES, parseCapability } from './capability.js';
import type { KeyPath } from './config-problem.js';
import { BUNDLED_PLUGINS, DEFAULT_KEY_ENV, DEFAULT_MODELS, isSet } from './defaults.js';
import type { Environment } from './defaults.js';
import type { ProblemList } from './problem-list.js';
import { entriesOf, tableOf, textOf, textsOf } from './raw-file.js';
import type { TomlData } from './toml-value.js';

type File = Readonly<Record<string, TomlData>>;

/** Whether a host to listen on is reachable from this machine only. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'));

const checkGateway = (list: ProblemList, file: File): void => {
  const gateway = tableOf(file, 'gateway');
  const host = textOf(gateway, 'host');
  if (host === null || isLoopback(host) || gateway['token'] !== undefined) return;
  list.add(['gateway', 'host'], {
    message: `${JSON.stringify(host)} is reachable from other machines, but no token is configured`,
    expected: 'a token beside it, or a loopback host',
    example: 'token = "a long random string"',
  });
};

/** Kinds that the contract names and this version does not run. */
const NOT_YET: ReadonlySet<string> = new Set(['cli']);
const NEEDS_URL: ReadonlySet<string> = new Set(['openai-compatible']);

const urlProblem = (text: string, kind: string): string | null => {
  // The scripted provider calls nobody; it may play a file (docs/scripted-provider.md).
  if (kind === 'scripted')
    return text.startsWith('file:') ? null : 'not a file: URL, as the kind scripted takes';
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) return 'not an http or https URL';
  return url.username !== '' || url.password !== '' ? 'credentials in the URL' : null;
};

/** A scripted provider calls nobody; its base_url names a scenario's file or folder. */
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
  if (url === null && NEEDS_URL.has(kind) && table['base_url'] === undefined)
    list.add([...path, 'base_url'], { message: `missing; the kind ${kind} has no address of its own` });
  const problem = url === null ? null : urlProblem(url, kind);
  if (problem !== null) list.add([...path, 'base_url'], { message: problem });
};

/** `env` null: this process does not call providers and need not see their keys. */
const checkProviders = (list: ProblemList, file: File, env: Environment | null): void => {
  for (const { table, path } of entriesOf(file, 'providers')) {
    const kind = textOf(table, 'kind') ?? '';
    checkProviderUrl(list, path, table, kind);
    if (NOT_YET.has(kind))
      list.add([...path, 'kind'], { message: `the kind ${kind} is not available in this version` });
    const configured = textOf(table, 'api_key_env');
    const variable = configured ?? DEFAULT_KEY_ENV[kind as ProviderKind] ?? null;
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
    if (table['model'] === undefined && kind !== null && DEFAULT_MODELS[kind] === undefined)
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
          expected: `a capability of type ${CAPABILITY_TYPES.join(' or ')}: http:HOST or store:NAME`,
          example: 'capabilities = ["http:api.example.com", "store:notes"]',
        });
    });
};

const checkPluginPaths = (list: ProblemList, file: File): void => {
  for (const { table, path } of entriesOf(file, 'plugins'))
    if (table['path'] === undefined && !BUNDLED_PLUGINS.includes(textOf(table, 'name') ?? ''))
      list.add([...path, 'path'], {
        message: `missing; only a bundled plug-in (${BUNDLED_PLUGINS.join(', ')}) needs none`,
      });
};

/** Rules that the grammar cannot say. */
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
  checkPluginPaths(list, file);
};
