import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the project (the clone), found from where this file lies. */
export const projectRoot = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/** Where engine binaries are kept, shared by every clone and home of this user. */
export const cacheFolder = (env = process.env) =>
  resolve(env.ANTIPHON_CACHE || join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'antiphon'));

/** The folder of one stack's state; every relative path is taken from where the command is run. */
export const homeFolder = (env = process.env, cwd = process.cwd()) =>
  resolve(cwd, env.ANTIPHON_HOME || '.antiphon');

/** @returns {string} the Node that the packages brought, which everything after the install runs on. */
export const bundledNode = (root = projectRoot) => join(root, 'node_modules', '.bin', 'node');

/** Lies in the cache because `npm ci` deletes everything under node_modules, and two installs must not meet there. */
export const projectLockPath = (root, cache) =>
  join(cache, 'locks', `project-${createHash('sha256').update(root).digest('hex').slice(0, 16)}.lock`);

/** Small notes on what is done already, in a folder that goes with the packages. */
export const stampPath = (root, name) => join(root, 'node_modules', '.cache', 'antiphon', `${name}.json`);

export const readPackageJson = (root) => JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

export const hasInstalledPackages = (root) => existsSync(join(root, 'node_modules', '.package-lock.json'));

export const ensureFolder = (path) => {
  mkdirSync(path, { recursive: true });
  return path;
};
