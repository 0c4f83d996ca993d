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

/** Runs all side by side; the first failure stops the others, and every failure that is not just that stop is told. */
const allOrStop = async (jobs, stop) => {
  const results = await Promise.allSettled(
    jobs.map((job) =>
      job.catch((error) => {
        stop.abort(new UserError('stopped because another step failed'));
        throw error;
      }),
    ),
  );
  const failures = results.filter(({ status }) => status === 'rejected').map(({ reason }) => reason);
  const real = [...new Set(failures)].filter(
    (reason) => reason !== stop.signal.reason && reason.name !== 'AbortError',
  );
  if (real.length > 1 && real.every((reason) => reason instanceof UserError)) {
    throw new UserError(real.map(({ message }) => message).join('\n\n'), {
      exitCode: Math.max(...real.map((e) => e.exitCode)),
    });
  }
  if (failures.length > 0) throw real[0] ?? failures[0];
};

const prepareLocked = async (context, progress) => {
  const stop = new AbortController();
  const signal = AbortSignal.any([context.signal, stop.signal]);
  const inner = { ...context, signal };
  const needed = neededEngines(context.env);
  const engines = (names) =>
    ensureEngines(names, { ...inner, postgresMajor: postgresMajorOf(context.home) }, progress);
  const installed = installPackages(inner, progress);
  await allOrStop(
    [
      installed.then(() => buildProject(inner, progress)),
      // PostgreSQL may come with the packages; the others do not wait for them.
      installed.then(
        () => engines(needed.filter((name) => name === 'postgres')),
        () => undefined,
      ),
      engines(needed.filter((name) => name !== 'postgres')),
    ],
    stop,
  );
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
