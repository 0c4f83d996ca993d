import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { readStack, type StackJson } from '@antiphon/stack/stack-json';

export interface GatewayAddress {
  /** `http://host:port`, without a slash at its end. */
  readonly url: string;
  readonly token: string | null;
}

export interface AddressOptions {
  readonly url?: string;
  readonly token?: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the folder that holds this installation's state: `ANTIPHON_HOME`, else `./.antiphon`. */
export const homeOf = (env: Environment, cwd: string): string =>
  resolve(cwd, env['ANTIPHON_HOME'] || '.antiphon');

const userHome = (env: Environment): string => env['HOME'] ?? homedir();

/** Returns true when a file or a variable may set the gateway's address or token. */
const isConfigured = (env: Environment, cwd: string): boolean =>
  Boolean(env['ANTIPHON_CONFIG'] || env['ANTIPHON_GATEWAY_TOKEN']) ||
  existsSync(resolve(cwd, 'antiphon.toml')) ||
  existsSync(join(userHome(env), '.antiphon', 'config.toml'));

/**
 * Returns the admin key of this home's stack for its own gateways, else null. Another gateway never
 * gets it.
 */
const adminKeyOf = (stack: StackJson | null, url: string): string | null => {
  if (stack === null || !stack.urls.gateways.includes(url)) return null;
  try {
    return readFileSync(stack.adminKeyFile, 'utf8').trim() || null;
  } catch {
    // A local gateway may need no key; one that does responds with what to do.
    return null;
  }
};

/**
 * Returns `--url`, `ANTIPHON_URL`, the address of this home's running stack, or the configured
 * address. The token is `--token`, `ANTIPHON_TOKEN`, the configured one, or the admin key of this
 * home's stack. Loads the configuration's parser only where it can matter: it is most of such a
 * command's start.
 */
export const findGateway = async (
  options: AddressOptions,
  env: Environment,
  cwd: string,
): Promise<GatewayAddress> => {
  const stack = readStack(homeOf(env, cwd));
  let url = options.url ?? (env['ANTIPHON_URL'] || undefined) ?? stack?.urls?.gateway ?? null;
  let token: string | null = null;
  if (url === null || isConfigured(env, cwd)) {
    const { loadConfig } = await import('@antiphon/config');
    const { gateway } = loadConfig({ env, cwd, homeDir: userHome(env), requireKeys: false });
    url ??= `http://${gateway.host}:${gateway.port}`;
    token = gateway.token;
  }
  url = url.replace(/(?<!\/)\/+$/, '');
  return {
    url,
    token: options.token ?? (env['ANTIPHON_TOKEN'] || undefined) ?? token ?? adminKeyOf(stack, url),
  };
};
