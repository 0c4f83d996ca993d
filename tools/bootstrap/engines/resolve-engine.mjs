import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { acquireLock } from '../lock.mjs';
import { toUserError, UserError } from '../user-error.mjs';
import { engineLockPath, findInCache } from './engine-cache.mjs';
import { findOnPath, probeFolder } from './probe.mjs';
import { fromGoInstall, fromNpmPackage, fromRelease, fromWheel } from './sources.mjs';

/**
 * @typedef {{cache: string, env: NodeJS.ProcessEnv, root: string, major?: number | null, signal?: AbortSignal,
 *   onProgress?: (text: string) => void, adopt?: (pid: number) => void}} ResolveContext
 */

/** A path that somebody set on purpose is used or refused, never passed over. */
const fromVariable = async (engine, { env, major }) => {
  const value = env[engine.variable];
  if (!value) return { ok: false, reason: 'not set' };
  const isFile = existsSync(value) && statSync(value).isFile();
  const probe = await probeFolder(engine, isFile ? dirname(value) : value, { major });
  if (probe.ok) return probe;
  throw new UserError(
    `${engine.variable} is set to ${value}, which cannot be used: ${probe.reason}.\n` +
      `What to do: set it to ${engine.variableMeans} (version ${engine.minimum} or newer), or unset it.`,
    { exitCode: 2 },
  );
};

const fromPath = async (engine, { env, major }) => {
  const folder = findOnPath(engine.binaries[0], env.PATH);
  return folder === null
    ? { ok: false, reason: `no ${engine.binaries[0]} in it` }
    : probeFolder(engine, folder, { major });
};

const localSources = (engine, context) => [
  [engine.variable, () => fromVariable(engine, context)],
  ['PATH', () => fromPath(engine, context)],
  ['cache', () => findInCache(engine, context.cache, context)],
];

const remoteSources = (engine, context) =>
  [
    engine.npmPackage && [`npm package ${engine.npmPackage}`, () => fromNpmPackage(engine, context)],
    engine.wheel && [
      `Python wheel ${engine.wheel.name} ${engine.wheel.version}`,
      () => fromWheel(engine, context),
    ],
    engine.release && [`release v${engine.release.version}`, () => fromRelease(engine, context)],
    engine.goInstall && [`go install ${engine.goInstall.module}`, () => fromGoInstall(engine, context)],
  ].filter(Boolean);

const attempt = async (source, context) => {
  try {
    return await source();
  } catch (error) {
    context.signal?.throwIfAborted();
    if (error instanceof UserError) throw error;
    const fatal = toUserError(error, `the cache ${context.cache}`, 'ANTIPHON_CACHE names another place');
    if (fatal instanceof UserError) throw fatal;
    return { ok: false, reason: error.message };
  }
};

/** The first source that has it, or null; what each of the others said is added to `tried`. */
const firstOf = async (sources, context, tried) => {
  for (const [name, source] of sources) {
    const result = await attempt(source, context);
    if (result.ok) return { version: result.version, folder: result.folder, source: name };
    tried.push(`${name}: ${result.reason}`);
  }
  return null;
};

const notFound = (engine, tried) =>
  new UserError(
    [
      `${engine.name} (version ${engine.minimum} or newer) is neither here nor to be had. Tried, in this order:`,
      ...tried.map((line, i) => `  ${i + 1}. ${line.replace(/\n/g, '\n     ')}`),
      `What to do: install it so that it is on PATH, or set ${engine.variable} to ${engine.variableMeans}, or set ` +
        `${engine.addressVariable} to one that runs already; or run this again with a network.`,
    ].join('\n'),
  );

const fetchLocked = async (engine, context, tried) => {
  const lock = await acquireLock(engineLockPath(context.cache, engine), {
    signal: context.signal,
    onWait: (holder) => context.onProgress?.(`waiting for process ${holder.pid}, which is fetching it`),
  });
  try {
    const locked = { ...context, adopt: lock.adopt };
    // Another start may have fetched it while we waited.
    const meanwhile = await findInCache(engine, context.cache, context);
    if (meanwhile.ok) return { version: meanwhile.version, folder: meanwhile.folder, source: 'cache' };
    return await firstOf(remoteSources(engine, locked), locked, tried);
  } finally {
    lock.endChildren();
    lock.release();
  }
};

const ensureCache = (cache) => {
  try {
    mkdirSync(join(cache, 'locks'), { recursive: true });
  } catch (error) {
    throw toUserError(error, `the cache ${cache}`, 'ANTIPHON_CACHE names another place');
  }
};

/**
 * Finds the programs of an engine, in this order: the variable's path, PATH if the version suffices, the cache, a
 * registry's package, the vendor's release with its checksum, a pinned version by `go install`. Else one UserError
 * tells what was tried, with what result, and what to do.
 * @returns {Promise<{version: string, folder: string, source: string}>}
 */
export const resolveEngine = async (engine, context) => {
  const tried = [];
  const full = { onProgress: () => {}, ...context };
  const local = await firstOf(localSources(engine, full), full, tried);
  if (local !== null) return local;
  ensureCache(full.cache);
  const fetched = await fetchLocked(engine, full, tried);
  if (fetched !== null) return fetched;
  throw notFound(engine, tried);
};
