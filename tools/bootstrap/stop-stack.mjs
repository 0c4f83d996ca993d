import { rmSync } from 'node:fs';
import { readJson } from './files.mjs';
import { homeLayout } from './home-layout.mjs';
import { lockHolder, tryLock } from './lock.mjs';
import { isAlive, signalProcess, terminate, waitForExit } from './processes.mjs';

/** The supervisor's own deadlines add up to less; after this it is not going to stop by itself. */
const SUPERVISOR_GRACE_MS = 120_000;

/** @typedef {{name: string, pid: number, start: string, stopSignal: NodeJS.Signals, graceMs: number}} RecordedChild */

/** Every recorded process that lives still, in the order in which it was started. */
export const liveChildren = (home) =>
  /** @type {RecordedChild[]} */ (readJson(homeLayout(home).childrenFile) ?? []).filter(isAlive);

/**
 * Ends what a supervisor that was killed left behind, in reverse order: services first, engines last.
 * A pid that belongs to another process by now is not touched. Answers the names of what it ended.
 */
export const endOrphans = async (home, tell = () => {}, { keepRecord = false } = {}) => {
  const orphans = liveChildren(home).reverse();
  for (const orphan of orphans) {
    tell(`ending ${orphan.name} (pid ${orphan.pid}), left by a supervisor that was killed`);
    const outcome = await terminate(orphan, { signal: orphan.stopSignal, graceMs: orphan.graceMs });
    // What it had started itself (a sandbox's cells) is in its process group.
    if (outcome !== 'gone') endGroup(orphan.pid);
  }
  if (!keepRecord) rmSync(homeLayout(home).childrenFile, { force: true });
  return orphans.map((orphan) => orphan.name);
};

/** Kills what is left of the process group of a process that has just ended. */
export const endGroup = (pid) => {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH' && error.code !== 'EPERM') throw error;
  }
};

const stopSupervisor = async (supervisor, tell) => {
  if (!signalProcess(supervisor, 'SIGTERM')) return;
  tell(`stopping (supervisor pid ${supervisor.pid})`);
  if (await waitForExit(supervisor, SUPERVISOR_GRACE_MS)) return;
  tell('the supervisor did not stop in time; ending everything by force');
  signalProcess(supervisor, 'SIGKILL');
  await waitForExit(supervisor, 5_000);
};

/**
 * Stops the stack of a home gracefully and leaves no process of it, whatever state it is in: running, starting,
 * or orphaned by a kill -9 of its supervisor. Stopping what does not run is no error.
 * @returns {Promise<{wasRunning: boolean}>}
 */
export const stopStack = async (home, tell = () => {}) => {
  const paths = homeLayout(home);
  const supervisor = lockHolder(paths.lockFile);
  if (supervisor !== null) await stopSupervisor(supervisor, tell);
  const orphans = await cleanUp(home, tell);
  return { wasRunning: supervisor !== null || orphans.length > 0 };
};

const cleanUp = async (home, tell) => {
  const paths = homeLayout(home);
  if (readJson(paths.childrenFile) === null && readJson(paths.stackFile) === null) return [];
  // Under the lock, so that a start at the same moment is not taken for something that was left behind.
  const attempt = await tryLock(paths.lockFile);
  if (!attempt.acquired) return [];
  try {
    const orphans = await endOrphans(home, tell);
    rmSync(paths.stackFile, { force: true });
    return orphans;
  } finally {
    attempt.lock.release();
  }
};
