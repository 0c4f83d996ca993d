import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readJson } from './files.mjs';

/** Folder of the project (the clone). */
export const projectRoot = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/** Returns the folder of downloaded engines, which all clones and homes of this user share. */
export const cacheFolder = (env = process.env) =>
  resolve(env.ANTIPHON_CACHE || join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'antiphon'));

/** Returns the folder of one stack's state; relative paths start at the working directory. */
export const homeFolder = (env = process.env, cwd = process.cwd()) =>
  resolve(cwd, env.ANTIPHON_HOME || '.antiphon');

/**
 * Returns the Node that is installed with the packages; everything after the install runs on it.
 */
export const bundledNode = (root = projectRoot) => join(root, 'node_modules', '.bin', 'node');

/**
 * Returns the path of the lock for installing and building. It lies in the cache because `npm ci`
 * deletes everything in node_modules.
 */
export const projectLockPath = (/** @type {string} */ root, /** @type {string} */ cache) =>
  join(cache, 'locks', `project-${createHash('sha256').update(root).digest('hex').slice(0, 16)}.lock`);

/** Returns the path of a record of finished work, in a folder that is deleted with the packages. */
export const stampPath = (/** @type {string} */ root, /** @type {string} */ name) =>
  join(root, 'node_modules', '.cache', 'antiphon', `${name}.json`);

/** Mode of such a record. Every user of the clone reads it, as the packages next to it. */
export const STAMP_MODE = 0o644;

export const readPackageJson = (/** @type {string} */ root) =>
  JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Returns the paths in a home (`ANTIPHON_HOME`), which belongs to one stack. */
export const homeLayout = (/** @type {string} */ home) => ({
  home,
  stackFile: join(home, 'stack.json'),
  lockFile: join(home, 'run', 'supervisor.lock'),
  /** Every process that the supervisor started, so that the next one finds them after a kill -9. */
  childrenFile: join(home, 'run', 'children.json'),
  portsFile: join(home, 'run', 'ports.json'),
  /** Copy of the last valid configuration, for services that restart while the file is broken. */
  lastConfigFile: join(home, 'run', 'last-good.toml'),
  postgresFile: join(home, 'postgres.json'),
  credentials: join(home, 'credentials'),
  adminKeyFile: join(home, 'credentials', 'admin.key'),
  masterKeyFile: join(home, 'credentials', 'master.key'),
  databaseUrlFile: join(home, 'credentials', 'database.url'),
  natsUsersFile: join(home, 'credentials', 'nats-users.json'),
  secretsFile: join(home, 'credentials', 'secrets.json'),
  filesFolder: join(home, 'files'),
  archiveFolder: join(home, 'archives'),
  logs: join(home, 'logs'),
  run: join(home, 'run'),
  postgres: join(home, 'postgres'),
  nats: join(home, 'nats'),
  temporal: join(home, 'temporal'),
});

/** @typedef {ReturnType<typeof homeLayout>} HomeLayout */

/**
 * Returns the major version of PostgreSQL that created this home's data, or null before that.
 * @returns {number | null}
 */
export const postgresMajorOf = (/** @type {string} */ home) =>
  readJson(homeLayout(home).postgresFile)?.major ?? null;
