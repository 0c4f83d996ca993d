import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { readJson, writeJsonAtomic } from './files.mjs';
import { CommandError, runCommand } from './processes.mjs';
import { bundledNode, STAMP_MODE, stampPath } from './project.mjs';
import { toUserError, UserError } from './user-error.mjs';

const NO_NETWORK =
  /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ERR_SOCKET_TIMEOUT|ENOTCACHED|network/i;
/** Errors of npm on a node_modules that a killed process left incomplete. */
const LEFTOVERS = /ENOTEMPTY|EEXIST|EISDIR|ENOTDIR|EINTEGRITY|ENOENT/;

const stampOf = (root) => ({
  packages: createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex'),
  platform: `${process.platform}-${process.arch}`,
});

/**
 * Compares node_modules with package-lock.json by npm's record of an install, written last. A
 * developer's `npm install` therefore counts too.
 */
const matchesLock = (root) => {
  const installed = readJson(join(root, 'node_modules', '.package-lock.json'))?.packages;
  if (installed === undefined) return false;
  const wanted = readJson(join(root, 'package-lock.json')).packages;
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '') return true;
    const found = installed[path];
    // Packages for other platforms are in the lock and not on the disk.
    if (found === undefined) return entry.optional === true;
    return found.version === entry.version && found.integrity === entry.integrity;
  });
};

/** @type {(root: string) => boolean} */
export const isInstalled = (root) => {
  if (!existsSync(bundledNode(root))) return false;
  const stamp = stampOf(root);
  if (JSON.stringify(readJson(stampPath(root, 'install'))) === JSON.stringify(stamp)) return true;
  if (!matchesLock(root)) return false;
  writeJsonAtomic(stampPath(root, 'install'), stamp, STAMP_MODE);
  return true;
};

/** Runs the npm that started this process, else the one on PATH. */
export const runNpm = (args, { root, env, signal, adopt }, onLine) => {
  const own = env.npm_execpath?.endsWith('.js') ? [env.npm_execpath] : [];
  const options = { cwd: root, env: { ...env, NODE_ENV: '' }, signal, adopt, onLine };
  return runCommand(own.length > 0 ? process.execPath : 'npm', [...own, ...args], options);
};

const networkLine = (output) =>
  (
    output.split('\n').find((text) => / failed.*reason|getaddrinfo/.test(text)) ??
    output.trim().split('\n').pop()
  )
    .replace(/^npm (error|ERR!)\s*/i, '')
    .trim();

const isNetworkError = (error) => error instanceof CommandError && NO_NETWORK.test(error.output);

/**
 * Returns why the registry cannot be reached, or null. Checked first, because 700 packages that
 * fail one by one take minutes.
 */
const findNetworkProblem = async (context) => {
  try {
    await runNpm(['ping', '--fetch-retries=1', '--fetch-retry-mintimeout=1000'], context);
    return null;
  } catch (error) {
    context.signal?.throwIfAborted();
    // Any other error, such as an unknown ping, is a response.
    return isNetworkError(error) ? networkLine(error.output) : null;
  }
};

/** Runs `npm ci` without install scripts, which would run unreviewed code. */
const runInstall = (context, isOffline, detail) =>
  runNpm(
    ['ci', '--ignore-scripts', '--no-audit', '--no-fund', isOffline ? '--offline' : '--prefer-offline'],
    context,
    (line) => line.startsWith('npm warn') || detail(line),
  );

/** Repeats an install from an empty node_modules where a killed install left an unusable one. */
const installClean = async (context, isOffline, detail) => {
  try {
    await runInstall(context, isOffline, detail);
  } catch (error) {
    context.signal?.throwIfAborted();
    const isRepairable =
      error instanceof CommandError && !isNetworkError(error) && LEFTOVERS.test(error.output);
    if (!isRepairable) throw error;
    rmSync(join(context.root, 'node_modules'), { recursive: true, force: true });
    await runInstall(context, isOffline, detail);
  }
};

const explain = (error, root, networkProblem) => {
  const explained = toUserError(error, `${root} or npm's cache`);
  if (!(error instanceof CommandError) || explained instanceof UserError) return explained;
  const problem = networkProblem ?? (isNetworkError(error) ? networkLine(error.output) : null);
  if (problem !== null)
    return new UserError(
      `the npm packages are not installed, and npm's registry cannot be reached (${problem}).\n` +
        'What to do: run this again with a network, or with a registry that can be reached (npm config set registry URL).',
      { cause: error },
    );
  const lines = error.output.split('\n').filter((line) => /^npm (error|ERR!)/.test(line));
  const details = lines.length === 0 ? error.message : lines.slice(0, 15).join('\n');
  return new UserError(`the packages could not be installed; npm says:\n${details}`, { cause: error });
};

/**
 * Installs the packages of package-lock.json unless they are installed. Repairs a killed install.
 * @type {import('./types.js').PrepareStep}
 */
export const installPackages = async (context, progress) => {
  const { root } = context;
  if (isInstalled(root)) return;
  await progress.step('npm packages: installing them', async (detail) => {
    // Without a network, npm's cache may still have all packages.
    const networkProblem = await findNetworkProblem(context);
    try {
      await installClean(context, networkProblem !== null, detail);
      writeJsonAtomic(stampPath(root, 'install'), stampOf(root), STAMP_MODE);
    } catch (error) {
      context.signal?.throwIfAborted();
      throw explain(error, root, networkProblem);
    }
  });
};
