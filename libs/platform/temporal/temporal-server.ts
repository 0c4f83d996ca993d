import { readFileSync } from 'node:fs';
import type { TLSConfig } from '@temporalio/client';
import { invalid } from '@antiphon/kernel';

/** Address of a Temporal server, and what a connection to it needs. */
export interface TemporalServer {
  /** `host:port` of the gRPC frontend. */
  readonly address: string;
  /** False for a plain connection. */
  readonly tls: TLSConfig | boolean;
  readonly apiKey?: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

const VARIABLE = {
  tls: 'ANTIPHON_TEMPORAL_TLS',
  ca: 'ANTIPHON_TEMPORAL_CA_FILE',
  cert: 'ANTIPHON_TEMPORAL_CERT_FILE',
  key: 'ANTIPHON_TEMPORAL_KEY_FILE',
  serverName: 'ANTIPHON_TEMPORAL_TLS_SERVER_NAME',
  apiKey: 'ANTIPHON_TEMPORAL_API_KEY',
  apiKeyFile: 'ANTIPHON_TEMPORAL_API_KEY_FILE',
} as const;

const refuse = (message: string, cause?: unknown): never => {
  throw invalid('SERVICE.BAD_ENVIRONMENT', message, { cause });
};

const readVariableFile = (env: Environment, name: string): Buffer | undefined => {
  const path = env[name];
  if (!path) return undefined;
  try {
    return readFileSync(path);
  } catch (cause) {
    return refuse(`${name}: ${path} cannot be read (${(cause as NodeJS.ErrnoException).code ?? '?'})`, cause);
  }
};

const readTls = (env: Environment): TLSConfig | boolean => {
  const ca = readVariableFile(env, VARIABLE.ca);
  const crt = readVariableFile(env, VARIABLE.cert);
  const key = readVariableFile(env, VARIABLE.key);
  const serverName = env[VARIABLE.serverName];
  if ((crt === undefined) !== (key === undefined))
    refuse(`${VARIABLE.cert} and ${VARIABLE.key} belong together`);
  const given = env[VARIABLE.tls] || undefined;
  if (given !== undefined && given !== 'true' && given !== 'false')
    refuse(`${VARIABLE.tls} is true or false`);
  const hasParts = ca !== undefined || crt !== undefined || Boolean(serverName);
  if (given === 'false' && hasParts) refuse(`${VARIABLE.tls} is false, but its files or server name are set`);
  if (!hasParts) return given === 'true';
  return {
    ...(ca === undefined ? {} : { serverRootCACertificate: ca }),
    ...(crt === undefined || key === undefined ? {} : { clientCertPair: { crt, key } }),
    ...(serverName ? { serverNameOverride: serverName } : {}),
  };
};

/**
 * Reads the TLS settings and the API key of a Temporal server. An API key is sent over TLS only.
 * Throws `SERVICE.BAD_ENVIRONMENT`.
 */
export const temporalServer = (address: string, env: Environment): TemporalServer => {
  const apiKey = (
    env[VARIABLE.apiKey] || readVariableFile(env, VARIABLE.apiKeyFile)?.toString('utf8')
  )?.trim();
  const tls = readTls(env);
  if (!apiKey) return { address, tls };
  if (env[VARIABLE.tls] === 'false') refuse(`${VARIABLE.apiKey} needs TLS`);
  return { address, tls: tls === false ? true : tls, apiKey };
};

/** Reads `ANTIPHON_TEMPORAL_ADDRESS` and its settings; undefined without an address. */
export const readTemporalServer = (env: Environment): TemporalServer | undefined => {
  // An empty variable counts as missing, as in readServiceEnv.
  const address = env['ANTIPHON_TEMPORAL_ADDRESS'] || undefined;
  return address === undefined ? undefined : temporalServer(address, env);
};

/** Returns the options of a connection of the SDK. A bare address is a plain connection. */
export const toConnectionOptions = (server: string | TemporalServer) =>
  typeof server === 'string'
    ? { address: server }
    : {
        address: server.address,
        tls: server.tls,
        ...(server.apiKey === undefined ? {} : { apiKey: server.apiKey }),
      };

/**
 * Returns the options of a client's connection. The proxy variables are for providers: gRPC would
 * reach loopback through them as well. A worker does not read them.
 */
export const toClientOptions = (server: string | TemporalServer) => ({
  ...toConnectionOptions(server),
  channelArgs: { 'grpc.enable_http_proxy': 0 },
});
