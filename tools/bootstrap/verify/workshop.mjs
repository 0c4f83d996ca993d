import { spawn } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cacheFolder, projectRoot } from '../project.mjs';
import { runCommand } from '../processes.mjs';

const START_MS = 40 * 60_000;

/**
 * Runs a command to its end. Resolves with its exit code and output.
 * @type {import('../types.js').RunToEnd}
 */
const run = (command, args, { cwd, env, timeoutMs = START_MS, onOutput = () => {} }) =>
  new Promise((resolve, reject) => {
    const began = Date.now();
    const child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const collect = (chunk) => {
      output += chunk;
      onOutput(output, child);
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    const timer = setTimeout(() => process.kill(-(child.pid ?? NaN), 'SIGKILL'), timeoutMs);
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, output, ms: Date.now() - began });
    });
  });

const readText = (path) => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // the process has ended, or belongs to another user
  }
};

/** Lists the processes whose command line or home contains this folder. */
const processesOf = (folder) =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((pid) => ({
      pid,
      command: readText(`/proc/${pid}/cmdline`).replace(/\0/g, ' '),
      env: readText(`/proc/${pid}/environ`),
    }))
    .filter(({ command, env }) => command.includes(folder) || env.includes(`ANTIPHON_HOME=${folder}`))
    .map(({ pid, command }) => `${pid} ${command}`);

/** Returns variables that give npm, Go and pip empty caches. */
const emptyCaches = (folder) => ({
  npm_config_cache: join(folder, 'npm-cache'),
  GOCACHE: join(folder, 'go-build'),
  GOMODCACHE: join(folder, 'go-modules'),
  GOFLAGS: '-modcacherw',
  PIP_NO_CACHE_DIR: '1',
});

/** Creates clones, caches and environments in one folder, which `dispose` removes. */
export const createWorkshop = async ({ cold, tests, keep }) => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-verify-'));
  // Other users can search it, so that PostgreSQL's user finds its data there.
  chmodSync(folder, 0o755);
  const mounts = [];
  const cache = join(folder, 'cache');
  mkdirSync(cache);
  // Copy the cache: a download or a build from source takes minutes.
  if (!cold && existsSync(cacheFolder()))
    cpSync(cacheFolder(), cache, { recursive: true, verbatimSymlinks: true });

  const baseEnv = () => {
    const env = Object.fromEntries(
      Object.entries(process.env).filter(
        ([name]) => !/^(npm_|ANTIPHON_(?!TEST_RUN$)|NODE_OPTIONS)/.test(name),
      ),
    );
    return { ...env, ANTIPHON_CACHE: cache, ...(cold ? emptyCaches(folder) : {}) };
  };

  const clone = async (name) => {
    const target = join(folder, name);
    if (!existsSync(target))
      await runCommand('git', ['clone', '--quiet', '--no-hardlinks', projectRoot, target]);
    return target;
  };

  /** Runs `npm <args>` in a clone. */
  const npm = (cwd, args, { env = {}, prefix = [], ...options } = {}) => {
    const [command, ...rest] = [...prefix, 'npm', ...args];
    return run(command, rest, { cwd, env: { ...baseEnv(), ...env }, ...options });
  };

  const mount = async (name, options) => {
    const target = join(folder, name);
    mkdirSync(target, { recursive: true });
    await runCommand('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', target]);
    mounts.push(target);
    return target;
  };

  return {
    folder,
    cache,
    cold,
    tests,
    isRoot: process.getuid?.() === 0,
    clone,
    npm,
    run,
    mount,
    processesOf,
    remount: (target, options) => runCommand('mount', ['-o', `remount,${options}`, target]),
    dispose: async () => {
      for (const target of mounts.reverse()) await runCommand('umount', ['-l', target]);
      if (keep) console.log(`left ${folder} in place`);
      else rmSync(folder, { recursive: true, force: true });
    },
  };
};
