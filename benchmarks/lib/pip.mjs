import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { cacheFolder } from '../../tools/bootstrap/project.mjs';

const INSTALL_MS = 1_800_000;
const START_MS = 300_000;
const NEEDED = 'import sys, venv, ensurepip; sys.exit(0 if (3, 10) <= sys.version_info < (3, 15) else 1)';

/** Reason why a server of a Python package cannot run here, as reports print it. */
export class Unmeasured extends Error {
  unmeasured = true;
}

const findPython = () => {
  const python = ['python3', 'python'].find((name) => spawnSync(name, ['-c', NEEDED]).status === 0);
  if (python === undefined)
    throw new Unmeasured('there is no Python from 3.10 to 3.14 with venv here (on Debian: python3-venv)');
  return python;
};

const run = async (command, args) => {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], timeout: INSTALL_MS });
  let said = '';
  child.stderr.on('data', (data) => (said += data));
  const [code, signal] = await once(child, 'close');
  if (code !== 0)
    throw new Unmeasured(`pip could not install it (${signal ?? code}): ${said.trim().split('\n').at(-1)}`);
};

/**
 * Installs pinned packages once into the cache, from wheels only, so that no package code runs at
 * install. Returns the folder of their virtual environment.
 */
export const installPins = async (name, pins, note) => {
  const digest = createHash('sha256').update(readFileSync(pins)).digest('hex').slice(0, 16);
  const folder = join(cacheFolder(), 'benchmarks', `${name}-${digest}`);
  const mark = join(folder, 'complete');
  if (existsSync(mark)) return folder;
  const python = findPython();
  rmSync(folder, { recursive: true, force: true });
  console.log(`installing ${name} (${note}, once) …`);
  await run(python, ['-m', 'venv', folder]);
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--only-binary', ':all:'];
  await run(join(folder, 'bin', 'python'), [...pip, '--no-deps', '-r', pins]);
  writeFileSync(mark, '');
  return folder;
};

/** Returns a port of loopback that is free now. */
export const freePort = async () => {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  return port;
};

const answers = (url) =>
  fetch(url, { signal: AbortSignal.timeout(2_000) })
    .then(({ ok }) => ok)
    .catch(() => false);

/**
 * Starts a server in a process of its own, with nothing of this environment but its path, and waits
 * for its health. `close` ends it, then calls `clean`.
 */
export const startServer = async (program, args, { folder, env = {}, healthUrl, clean = () => {} }) => {
  const child = spawn(program, args, {
    ...{ cwd: folder, env: { PATH: process.env.PATH, HOME: folder, ...env }, stdio: 'ignore' },
  });
  const gone = new Promise((resolve) => child.once('error', resolve).once('exit', resolve));
  const guard = () => child.kill('SIGKILL');
  process.once('exit', guard);
  const close = async () => {
    child.kill('SIGTERM');
    await Promise.race([gone, wait(10_000, undefined, { ref: false }).then(guard)]);
    process.off('exit', guard);
    clean();
  };
  for (const deadline = performance.now() + START_MS; !(await answers(healthUrl)); await wait(250)) {
    if (performance.now() < deadline && child.exitCode === null && child.pid !== undefined) continue;
    await close();
    throw new Unmeasured('its server did not start');
  }
  return close;
};
