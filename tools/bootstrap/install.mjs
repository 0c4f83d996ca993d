import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { readJson, writeJsonAtomic } from './files.mjs';
import { bundledNode, stampPath } from './project.mjs';
import { CommandError, runCommand } from './run-command.mjs';
import { toUserError, UserError } from './user-error.mjs';

const NO_NETWORK =
  /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ERR_SOCKET_TIMEOUT|ENOTCACHED|network/i;
/** npm's own marks of a half-deleted or half-written node_modules. */
const LEFTOVERS = /ENOTEMPTY|EEXIST|EISDIR|ENOTDIR|EINTEGRITY|ENOENT/;

const lockHash = (root) =>
  createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
const stampOf = (root) => ({ packages: lockHash(root), platform: `${process.platform}-${process.arch}` });
const isSame = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/**
 * Whether node_modules is exactly what package-lock.json asks for, by npm's own record of what it installed (written at
 * the very end of an install): then a developer's `npm install` is as good as ours.
 */
const matchesLock = (root) => {
  const installed = readJson(join(root, 'node_modules', '.package-lock.json'))?.packages;
  if (installed === undefined) return false;
  const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '') return true;
    const have = installed[path];
    // Packages for other platforms are in the lock but not on the disk.
    return have === undefined
      ? entry.optional === true
      : have.version === entry.version && have.integrity === entry.integrity;
  });
};

export const isInstalled = (root) => {
  if (!existsSync(bundledNode(root))) return false;
  const stamp = stampOf(root);
  if (isSame(readJson(stampPath(root, 'install')), stamp)) return true;
  if (!matchesLock(root)) return false;
  writeJsonAtomic(stampPath(root, 'install'), stamp);
  return true;
};

/** npm's own program when npm started us, so that it is the same one; else the one on PATH. */
const npmCommand = (env) =>
  env.npm_execpath?.endsWith('.js') ? [process.execPath, [env.npm_execpath]] : ['npm', []];

const runNpm = (args, { root, env, signal, adopt }, onLine) => {
  const [program, first] = npmCommand(env);
  return runCommand(program, [...first, ...args], {
    cwd: root,
    env: { ...env, NODE_ENV: '' },
    signal,
    adopt,
    onLine,
  });
};

const networkLine = (output) =>
  (
    output.split('\n').find((text) => / failed.*reason|getaddrinfo/.test(text)) ??
    output.trim().split('\n').pop()
  )
    .replace(/^npm (error|ERR!)\s*/i, '')
    .trim();

/** Why npm's registry cannot be reached, null if it can: seven hundred packages that fail one by one take minutes. */
const findNetworkProblem = async (context) => {
  try {
    await runNpm(['ping', '--fetch-retries=1', '--fetch-retry-mintimeout=1000'], context);
    return null;
  } catch (error) {
    context.signal?.throwIfAborted();
    // A registry that knows no ping is one that answers.
    return error instanceof CommandError && NO_NETWORK.test(error.output) ? networkLine(error.output) : null;
  }
};

/** No install scripts: none of ours is needed, and other people's code does not run before anyone looked at it. */
const runInstall = (context, offline, detail) =>
  runNpm(
    ['ci', '--ignore-scripts', '--no-audit', '--no-fund', offline ? '--offline' : '--prefer-offline'],
    context,
    (line) => line.startsWith('npm warn') || detail(line),
  );

/** npm explains itself first and lists its options after that. */
const npmErrors = ({ message, output }) => {
  const lines = output.split('\n').filter((line) => /^npm (error|ERR!)/.test(line));
  return lines.length === 0 ? message : lines.slice(0, 15).join('\n');
};

const notReachable = (problem, cause) =>
  new UserError(
    `the npm packages are not installed, and npm's registry cannot be reached (${problem}).\n` +
      'What to do: run this again with a network, or with a registry that can be reached (npm config set registry URL).',
    { cause },
  );

const explain = (error, root, networkProblem) => {
  if (!(error instanceof CommandError)) return toUserError(error, root);
  const meant = toUserError(error, `${root} or npm's cache`);
  if (meant instanceof UserError) return meant;
  if (networkProblem !== null) return notReachable(networkProblem, error);
  if (NO_NETWORK.test(error.output)) return notReachable(networkLine(error.output), error);
  return new UserError(`the packages could not be installed; npm says:\n${npmErrors(error)}`, {
    cause: error,
  });
};

/** Without a network, npm's cache may have everything. */
const installClean = async (context, offline, detail) => {
  try {
    await runInstall(context, offline, detail);
  } catch (error) {
    context.signal?.throwIfAborted();
    if (!(error instanceof CommandError) || NO_NETWORK.test(error.output) || !LEFTOVERS.test(error.output))
      throw error;
    rmSync(join(context.root, 'node_modules'), { recursive: true, force: true });
    await runInstall(context, offline, detail);
  }
};

/** Installs the packages of package-lock.json unless they are there; safe after an install that was killed half-way. */
export const installPackages = async (context, progress) => {
  const { root } = context;
  if (isInstalled(root)) return;
  await progress.step('npm packages: installing them', async (detail) => {
    const networkProblem = await findNetworkProblem(context);
    try {
      await installClean(context, networkProblem !== null, detail);
      writeJsonAtomic(stampPath(root, 'install'), stampOf(root));
    } catch (error) {
      context.signal?.throwIfAborted();
      throw explain(error, root, networkProblem);
    }
  });
};
