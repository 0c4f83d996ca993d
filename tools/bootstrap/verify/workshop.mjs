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
import { runCommand } from '../run-command.mjs';

const START_MS = 40 * 60_000;

/** Runs a command to its end; never rejects for an exit code. */
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
    const timer = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), timeoutMs);
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, output, ms: Date.now() - began });
    });
  });

const readOr = (path, encoding) => {
  try {
    return readFileSync(path, encoding);
  } catch {
    return ''; // it has ended, or is not ours to read
  }
};

/** Every process whose command line, working folder's environment or home has to do with this folder. */
const processesOf = (folder) =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((pid) => ({
      pid,
      command: readOr(`/proc/${pid}/cmdline`, 'utf8').replace(/\0/g, ' '),
      env: readOr(`/proc/${pid}/environ`, 'utf8'),
    }))
    .filter(({ command, env }) => command.includes(folder) || env.includes(`ANTIPHON_HOME=${folder}`))
    .map(({ pid, command }) => `${pid} ${command}`);

/** As on a machine where nobody has built or fetched anything before. */
const emptyCaches = (folder) => ({
  npm_config_cache: join(folder, 'npm-cache'),
  GOCACHE: join(folder, 'go-build'),
  GOMODCACHE: join(folder, 'go-modules'),
  GOFLAGS: '-modcacherw',
  PIP_NO_CACHE_DIR: '1',
});

/** Clones, caches and environments for the checks, in one folder that is removed at the end. */
export const createWorkshop = async ({ cold, tests, keep }) => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-verify-'));
  // As a newcomer's folder is: PostgreSQL's user can pass through it, and nothing has to lie elsewhere.
  chmodSync(folder, 0o755);
  const mounts = [];
  const cache = join(folder, 'cache');
  mkdirSync(cache);
  // Warm: the checks are about the commands, and a download or a build from source takes minutes.
  if (!cold && existsSync(cacheFolder()))
    cpSync(cacheFolder(), cache, { recursive: true, verbatimSymlinks: true });

  const baseEnv = () => {
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !/^(npm_|ANTIPHON_|NODE_OPTIONS)/.test(name)),
    );
    return { ...env, ANTIPHON_CACHE: cache, ...(cold ? emptyCaches(folder) : {}) };
  };

  const clone = async (name) => {
    const target = join(folder, name);
    if (!existsSync(target))
      await runCommand('git', ['clone', '--quiet', '--no-hardlinks', projectRoot, target]);
    return target;
  };

  /** `npm <args>` in a clone. */
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
      if (keep) console.log(`kept ${folder}`);
      else rmSync(folder, { recursive: true, force: true });
    },
  };
};
