import { isUtf8 } from 'node:buffer';
import { readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { AntiphonConfig } from './antiphon-config.js';
import { buildConfig, isSet, resolveFile } from './build-config.js';
import { configError, errorCode, isMissing } from './config-problem.js';
import type { ConfigErrorReason } from './config-problem.js';
import { ConfigFile, MIN_TOKEN_LENGTH, TOKEN_RULE } from './config.schema.js';
import { describeSettings } from './effective-config.js';
import type { Environment } from './build-config.js';
import { parseConfig } from './parse-config.js';
import { NO_PROXY_SETTING } from './provider-proxy.js';
import { withoutUrlSecrets } from './provider-url.js';
import { MAX_CONFIG_BYTES } from './toml-limits.js';
import { providerWarnings } from './check-provider-url.js';
import { fileWarnings, toolWarnings } from './warnings.js';

export interface LoadOptions {
  readonly env: Environment;
  /** Absolute. */
  readonly cwd: string;
  readonly homeDir: string;
  /**
   * True (the default) if each provider's key must be in `env`. False in services without
   * providers.
   */
  readonly requireKeys?: boolean;
}

const PATH_VARIABLE = 'ANTIPHON_CONFIG';
const TOKEN_VARIABLE = 'ANTIPHON_GATEWAY_TOKEN';
/** Folder of relative paths: the supervisor's copy of a file lies elsewhere than the file. */
const FOLDER_VARIABLE = 'ANTIPHON_CONFIG_FOLDER';

const fail = (
  reason: ConfigErrorReason,
  file: string,
  message: string,
  expected: string,
  line: number | null = null,
): never => {
  const place = { line, column: line === null ? null : 1, key: '', nearest: null, related: null };
  throw configError(reason, [{ file, ...place, message, expected, example: null }]);
};

/** Returns the bytes of the file, or null if it does not exist. Any other failure is an error. */
const readBytes = (path: string): Buffer | null => {
  try {
    const info = statSync(path);
    if (!info.isFile()) fail('unreadable', path, `${path} is not a file`, 'a TOML file');
    if (info.size > MAX_CONFIG_BYTES)
      fail(
        'invalid',
        path,
        `the file is too large (${info.size} bytes)`,
        `at most ${MAX_CONFIG_BYTES} bytes`,
      );
    return readFileSync(path);
  } catch (error) {
    const code = errorCode(error);
    if (isMissing(error)) return null;
    if (code.startsWith('CONFIG.')) throw error;
    return fail('unreadable', path, `${path} cannot be read (${code})`, 'a file that this user may read');
  }
};

const NEWLINE = 0x0a;

/**
 * Returns the first line that is not UTF-8, from 1. A line break is never part of a longer
 * character.
 */
const brokenLine = (bytes: Buffer): number => {
  let line = 1;
  for (let start = 0; start < bytes.length; line++) {
    const end = bytes.indexOf(NEWLINE, start);
    const next = end === -1 ? bytes.length : end + 1;
    if (!isUtf8(bytes.subarray(start, next))) break;
    start = next;
  }
  return line;
};

const decode = (path: string, bytes: Buffer): string =>
  isUtf8(bytes)
    ? new TextDecoder().decode(bytes)
    : fail('invalid', path, 'a character is not UTF-8', 'a file in UTF-8', brokenLine(bytes));

/** Returns the paths where a configuration may be, in order (docs/contract.md §2). */
export const configPaths = ({ env, cwd, homeDir }: LoadOptions): { path: string; explicit: boolean }[] =>
  isSet(env, PATH_VARIABLE)
    ? [{ path: resolve(cwd, env[PATH_VARIABLE] ?? ''), explicit: true }]
    : [
        { path: resolve(cwd, 'antiphon.toml'), explicit: false },
        { path: join(resolve(homeDir), '.antiphon', 'config.toml'), explicit: false },
      ];

const findFile = (options: LoadOptions): { path: string; bytes: Buffer } | null => {
  for (const { path, explicit } of configPaths(options)) {
    const bytes = readBytes(path);
    if (bytes !== null) return { path, bytes };
    if (explicit)
      fail(
        'missing',
        path,
        `${PATH_VARIABLE} names ${path}, which does not exist`,
        'the path of a file, or no variable',
      );
  }
  return null;
};

/** Overrides the token: in a container all services share the file, and the token is a secret. */
const withEnvironmentToken = (config: AntiphonConfig, env: Environment): AntiphonConfig => {
  if (!isSet(env, TOKEN_VARIABLE)) return config;
  const token = (env[TOKEN_VARIABLE] ?? '').trim();
  if (token.length < MIN_TOKEN_LENGTH)
    fail('invalid', TOKEN_VARIABLE, `the token has ${token.length} characters (not shown)`, TOKEN_RULE);
  const settings = config.settings.map((setting) =>
    setting.key === 'gateway.token' ? { ...setting, value: 'set', origin: 'environment' as const } : setting,
  );
  return { ...config, gateway: { ...config.gateway, token }, settings };
};

/**
 * Finds, reads and checks the configuration. The first of these wins: `ANTIPHON_CONFIG`,
 * `./antiphon.toml`, `~/.antiphon/config.toml`, the built-in defaults. `ANTIPHON_GATEWAY_TOKEN`
 * overrides `gateway.token`. Throws `CONFIG.INVALID`, `CONFIG.NOT_FOUND` or `CONFIG.UNREADABLE`
 * with all problems in `data.problems`, which `renderConfigErrors` prints.
 */
export const loadConfig = (options: LoadOptions): AntiphonConfig => {
  const { env, cwd, homeDir, requireKeys = true } = options;
  const found = findFile(options);
  if (found === null) {
    const file = resolveFile(ConfigFile.parse({}), env);
    const defaults = buildConfig(file, { source: null, folder: cwd, homeDir });
    return withEnvironmentToken({ ...defaults, settings: describeSettings(file, {}) }, env);
  }
  const text = decode(found.path, found.bytes);
  const folder = env[FOLDER_VARIABLE] ?? dirname(found.path);
  const config = parseConfig(text, { source: found.path, folder, homeDir, env, requireKeys });
  const warnings = [...fileWarnings(config), ...toolWarnings(config), ...providerWarnings(config, env)];
  const checked = { ...config, warnings };
  return withEnvironmentToken(checked, env);
};

export const REDACTED = '[set, not shown]';

/** Returns the configuration without secrets and prompts, for status responses and logs. */
export const redactedConfig = (config: AntiphonConfig): AntiphonConfig => ({
  ...config,
  gateway: { ...config.gateway, token: config.gateway.token === null ? null : REDACTED },
  providers: config.providers.map((provider) => ({
    ...provider,
    baseUrl: provider.baseUrl === null ? null : withoutUrlSecrets(provider.baseUrl),
    ...(provider.proxy === undefined || provider.proxy === NO_PROXY_SETTING ? {} : { proxy: REDACTED }),
  })),
  agents: config.agents.map((agent) => ({
    ...agent,
    systemPrompt: agent.systemPrompt === null ? null : REDACTED,
  })),
});
