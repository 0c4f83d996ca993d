import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { loadConfig } from '@antiphon/config';
import { readStack } from '@antiphon/stack';

export interface GatewayAddress {
  /** `http://host:port`, without a slash at its end. */
  readonly url: string;
  readonly token: string | null;
}

export interface AddressOptions {
  readonly url?: string;
  readonly token?: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Where this installation keeps its state: `ANTIPHON_HOME`, else (or where it is empty) `./.antiphon`. */
export const homeOf = (env: Environment, cwd: string): string =>
  resolve(cwd, env['ANTIPHON_HOME'] || '.antiphon');

/** `--url`, `ANTIPHON_URL`, the running stack of this home, else the configured address. */
export const findGateway = (options: AddressOptions, env: Environment, cwd: string): GatewayAddress => {
  const config = loadConfig({ env, cwd, homeDir: env['HOME'] ?? homedir(), requireKeys: false });
  const url =
    options.url ??
    (env['ANTIPHON_URL'] || undefined) ??
    readStack(homeOf(env, cwd))?.urls?.gateway ??
    `http://${config.gateway.host}:${config.gateway.port}`;
  return {
    url: url.replace(/\/+$/, ''),
    token: options.token ?? (env['ANTIPHON_TOKEN'] || undefined) ?? config.gateway.token,
  };
};
