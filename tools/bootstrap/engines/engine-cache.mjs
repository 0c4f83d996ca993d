import { createHash } from 'node:crypto';
import { createReadStream, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { mkdir, mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { readJson, writeJsonAtomic } from '../files.mjs';
import { isAtLeast, platformKey } from './engine-specs.mjs';
import { judgeVersion, probeFolder } from './probe.mjs';

const MANIFEST = 'engine.json';

/** `<cache>/engines/<engine>/<version>-<platform>/`, with the programs in `bin/` and a manifest beside it. */
const engineFolder = (cache, engine) => join(cache, 'engines', engine.key);
export const engineLockPath = (cache, engine) => join(cache, 'locks', `${engine.key}.lock`);

export const sha256File = async (path) => {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
};

const describe = async (path) => {
  const { size, mtimeMs } = statSync(path);
  return { size, mtimeMs, sha256: await sha256File(path) };
};

/** Size and time tell that nobody touched a file since its checksum was taken; else the checksum is taken again. */
const isIntact = async (path, recorded) => {
  let now;
  try {
    now = statSync(path);
  } catch {
    return false; // it is gone
  }
  if (now.size !== recorded.size) return false;
  return now.mtimeMs === recorded.mtimeMs || (await sha256File(path)) === recorded.sha256;
};

const listEntries = (cache, engine) => {
  try {
    return readdirSync(engineFolder(cache, engine)).filter((name) => name.endsWith(`-${platformKey}`));
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw error;
  }
};

const checkEntry = async (engine, folder, major) => {
  const manifest = readJson(join(folder, MANIFEST));
  if (manifest === null) return { ok: false, reason: `${folder} has no ${MANIFEST}` };
  for (const [program, recorded] of Object.entries(manifest.programs)) {
    const path = join(folder, 'bin', program);
    if (!(await isIntact(path, recorded))) return { ok: false, reason: `${path} is damaged` };
  }
  return judgeVersion(engine, manifest.version, join(folder, 'bin'), major);
};

/** The newest good copy in the cache. A damaged one is named in the reason, and replaced when it is fetched again. */
export const findInCache = async (engine, cache, { major } = {}) => {
  const newestFirst = listEntries(cache, engine).sort((a, b) =>
    isAtLeast(a.split('-')[0], b.split('-')[0]) ? -1 : 1,
  );
  const reasons = [];
  for (const name of newestFirst) {
    const entry = await checkEntry(engine, join(engineFolder(cache, engine), name), major);
    if (entry.ok) return entry;
    reasons.push(entry.reason);
  }
  return {
    ok: false,
    reason: reasons.length === 0 ? `nothing in ${engineFolder(cache, engine)}` : reasons.join('; '),
  };
};

/**
 * Puts an engine into the cache: `fill(folder)` writes it into a folder aside, which then takes its place by one
 * rename, so that a kill leaves nothing that looks like an engine. Call it under the engine's lock.
 */
export const addToCache = async (engine, cache, { version, source }, fill) => {
  const parent = engineFolder(cache, engine);
  await mkdir(parent, { recursive: true });
  removeLeftovers(parent);
  const aside = await mkdtemp(join(parent, 'new-'));
  try {
    await mkdir(join(aside, 'bin'));
    await fill(aside);
    const programs = {};
    for (const program of engine.binaries) programs[program] = await describe(join(aside, 'bin', program));
    const probe = await probeFolder(engine, join(aside, 'bin'));
    if (!probe.ok) throw new Error(probe.reason);
    writeJsonAtomic(join(aside, MANIFEST), { version: probe.version, source, programs }, 0o644);
    const folder = join(parent, `${version}-${platformKey}`);
    rmSync(folder, { recursive: true, force: true });
    renameSync(aside, folder);
    return { ok: true, version: probe.version, folder: join(folder, 'bin') };
  } catch (error) {
    rmSync(aside, { recursive: true, force: true });
    throw error;
  }
};

/** What a killed fetch left; nobody else is filling a folder, since we hold the lock. */
const removeLeftovers = (parent) => {
  for (const name of readdirSync(parent)) {
    if (name.startsWith('new-')) rmSync(join(parent, name), { recursive: true, force: true });
  }
};
