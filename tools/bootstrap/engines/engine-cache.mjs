import { createHash } from 'node:crypto';
import { createReadStream, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { mkdir, mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { readJson, writeJsonAtomic } from '../files.mjs';
import { isAtLeast, platformKey } from './engine-specs.mjs';
import { judgeVersion, probeFolder } from './probe.mjs';

const MANIFEST = 'engine.json';

/**
 * Returns the folder of `<version>-<platform>/`, which has the programs in `bin/` and a manifest.
 */
const engineFolder = (cache, engine) => join(cache, 'engines', engine.key);

/** @type {(path: string) => Promise<string>} */
export const sha256File = async (path) => {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
};

const describe = async (path) => {
  const { size, mtimeMs } = statSync(path);
  return { size, mtimeMs, sha256: await sha256File(path) };
};

/** Compares size and time first; a file with another time is hashed again. */
const isIntact = async (path, recorded) => {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.size !== recorded.size) return false;
  return found?.mtimeMs === recorded.mtimeMs || (await sha256File(path)) === recorded.sha256;
};

const listEntries = (cache, engine) => {
  try {
    return readdirSync(engineFolder(cache, engine)).filter((name) => name.endsWith(`-${platformKey}`));
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw error;
  }
};

/** @type {import('../types.js').ProbeEngine} */
const checkEntry = async (engine, folder, major) => {
  const manifest = readJson(join(folder, MANIFEST));
  if (manifest === null) return { ok: false, reason: `${folder} has no ${MANIFEST}` };
  for (const [program, recorded] of Object.entries(manifest.programs)) {
    const path = join(folder, 'bin', program);
    if (!(await isIntact(path, recorded))) return { ok: false, reason: `${path} is damaged` };
  }
  return judgeVersion(engine, manifest.version, join(folder, 'bin'), major);
};

/**
 * Returns the newest intact copy in the cache. Names damaged copies in the reason.
 * @type {import('../types.js').ProbeEngine}
 */
export const findInCache = async (engine, cache, major) => {
  const versionOf = (name) => name.split('-')[0] ?? '';
  const newestFirst = listEntries(cache, engine).sort((a, b) =>
    isAtLeast(versionOf(a), versionOf(b)) ? -1 : 1,
  );
  const reasons = [];
  for (const name of newestFirst) {
    const entry = await checkEntry(engine, join(engineFolder(cache, engine), name), major);
    if (entry.ok) return entry;
    reasons.push(entry.reason);
  }
  const empty = `nothing in ${engineFolder(cache, engine)}`;
  return { ok: false, reason: reasons.length === 0 ? empty : reasons.join('; ') };
};

/**
 * Adds an engine to the cache. `fill(folder)` writes into a temporary folder. One rename moves it
 * into place, so that a kill leaves no incomplete engine. Requires the engine's lock.
 */
export const addToCache = async (engine, cache, { version, source }, fill) => {
  const parent = engineFolder(cache, engine);
  await mkdir(parent, { recursive: true });
  // Remove the folders of killed downloads: under the lock no other process fills one.
  for (const name of readdirSync(parent).filter((entry) => entry.startsWith('new-')))
    rmSync(join(parent, name), { recursive: true, force: true });
  const temporary = await mkdtemp(join(parent, 'new-'));
  try {
    await mkdir(join(temporary, 'bin'));
    await fill(temporary);
    const programs = {};
    for (const program of engine.binaries)
      programs[program] = await describe(join(temporary, 'bin', program));
    const probe = await probeFolder(engine, join(temporary, 'bin'));
    if (!probe.ok) throw new Error(probe.reason);
    writeJsonAtomic(join(temporary, MANIFEST), { version: probe.version, source, programs }, 0o644);
    const folder = join(parent, `${version}-${platformKey}`);
    rmSync(folder, { recursive: true, force: true });
    renameSync(temporary, folder);
    return { ok: true, version: probe.version, folder: join(folder, 'bin') };
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    throw error;
  }
};
