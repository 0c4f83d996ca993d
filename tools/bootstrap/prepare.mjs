import { buildProject } from './build.mjs';
import { ensureEngines, neededEngines } from './engines.mjs';
import { postgresMajorOf } from './home-layout.mjs';
import { installPackages } from './install.mjs';
import { acquireLock } from './lock.mjs';
import { projectLockPath } from './project.mjs';
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

/** One error that tells all failures; those that only say that another step failed are left out. */
const joinFailures = (results, stop) => {
  const reasons = results.filter(({ status }) => status === 'rejected').map(({ reason }) => reason);
  const real = [...new Set(reasons)].filter(
    (reason) => reason !== stop.signal.reason && reason.name !== 'AbortError',
  );
  if (real.length <= 1 || !real.every((reason) => reason instanceof UserError)) return real[0] ?? reasons[0];
  const exitCode = Math.max(...real.map((reason) => reason.exitCode));
  return new UserError(real.map(({ message }) => message).join('\n\n'), { exitCode });
};

const stopOthers = (job, stop) =>
  job.catch((error) => {
    stop.abort(new UserError('stopped because another step failed'));
    throw error;
  });

const prepareLocked = async (context, progress) => {
  const stop = new AbortController();
  const inner = { ...context, signal: AbortSignal.any([context.signal, stop.signal]) };
  const needed = neededEngines(context.env);
  const engines = (names) =>
    ensureEngines(names, { ...inner, postgresMajor: postgresMajorOf(context.home) }, progress);
  const installed = installPackages(inner, progress);
  const results = await Promise.allSettled([
    // Without packages or a build there is nothing to run engines for, and one may be minutes from done. An engine that
    // fails stops nobody: what the others achieve is there the next time, and all that is missing is told at once.
    stopOthers(
      installed.then(() => buildProject(inner, progress)),
      stop,
    ),
    // PostgreSQL may come with the packages; the others do not wait for them.
    installed.then(
      () => engines(needed.filter((name) => name === 'postgres')),
      () => undefined,
    ),
    ...needed.filter((name) => name !== 'postgres').map((name) => engines([name])),
  ]);
  const failure = joinFailures(results, stop);
  if (failure !== undefined) throw failure;
};

/**
 * Installs, builds and fetches what is not there yet; does nothing, quickly, when all of it is.
 * @param {{root: string, cache: string, home: string, env: NodeJS.ProcessEnv, signal: AbortSignal}} context
 */
export const prepare = async (context, progress) => {
  const lock = await lockProject(context, progress);
  try {
    await prepareLocked({ ...context, adopt: lock.adopt }, progress);
  } finally {
    lock.endChildren();
    lock.release();
  }
};
