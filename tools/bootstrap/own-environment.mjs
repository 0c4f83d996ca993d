import { accessSync, constants, statSync } from 'node:fs';

/**
 * Variables of the user's shell that change our own programs or their connections on loopback. They
 * are those of libpq, which `pg` reads too, of NATS, Temporal and Node, and locales.
 */
const FOREIGN =
  /^(PG[A-Z]+|NATS_[A-Z_]+|TEMPORAL_[A-Z_]+|NODE_(OPTIONS|PATH|USE_ENV_PROXY)|LANG|LANGUAGE|LC_[A-Z]+)$/;

/** Variables that name the folder of temporary files, in the order in which Node reads them. */
const TEMPORARY = new Set(['TMPDIR', 'TMP', 'TEMP']);

/** @type {(path: string | undefined) => boolean} */
const isUsableFolder = (path) => {
  try {
    accessSync(path ?? '', constants.W_OK | constants.X_OK);
    return statSync(path ?? '').isDirectory();
  } catch {
    return false;
  }
};

/** @type {(name: string, value: string | undefined) => boolean} */
const isForeign = (name, value) => FOREIGN.test(name) || (TEMPORARY.has(name) && !isUsableFolder(value));

/**
 * Returns the environment of the programs that a start runs: the user's, without the variables that
 * would change them. Proxy variables stay, for calls of providers. Node uses them for nothing else
 * without `NODE_USE_ENV_PROXY`.
 * @type {(env: NodeJS.ProcessEnv) => NodeJS.ProcessEnv}
 */
export const ownEnvironment = (env) =>
  Object.fromEntries(Object.entries(env).filter(([name, value]) => !isForeign(name, value)));

const LOOPBACK = ['localhost', '127.0.0.1', '::1', '[::1]'];

/**
 * Removes the variables of the database's client from this process, and lets it reach loopback
 * without a proxy. For a program that the user runs, whose Node has read its own variables by now.
 * Node reads `no_proxy` before `NO_PROXY`, and again at each request.
 * @type {(env: NodeJS.ProcessEnv) => void}
 */
export const reachLoopbackDirectly = (env) => {
  for (const name of Object.keys(env)) if (/^PG[A-Z]+$/.test(name)) delete env[name];
  const rules = env.no_proxy ?? env.NO_PROXY ?? '';
  const own = LOOPBACK.filter((host) => !rules.split(/[\s,]+/).includes(host));
  env.no_proxy = env.NO_PROXY = [...(rules === '' ? [] : [rules]), ...own].join(',');
};
