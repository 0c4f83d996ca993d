import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { readJson } from './files.mjs';
import { homeLayout } from './home-layout.mjs';
import { lockHolder, tryLock } from './lock.mjs';
import { identify, isAlive, signalProcess, terminate, waitForExit } from './processes.mjs';

/** The supervisor's own deadlines add up to less; after this it is not going to stop by itself. */
const SUPERVISOR_GRACE_MS = 120_000;

/** @typedef {{name: string, pid: number, start: string, stopSignal: NodeJS.Signals, graceMs: number}} RecordedChild */

/** Every child of a supervisor has this in its environment, with the home that it belongs to. */
export const SUPERVISED_HOME = 'ANTIPHON_SUPERVISED_HOME';

/** Grace for a child that was never written down: SIGINT asks engines and services alike. */
const STRAY = { name: 'a process', stopSignal: 'SIGINT', graceMs: 20_000 };

/** Every recorded process that lives still, in the order in which it was started. */
export const liveChildren = (home) =>
  /** @type {RecordedChild[]} */ (readJson(homeLayout(home).childrenFile) ?? []).filter(isAlive);

/**
 * Ends what a supervisor that was killed left behind, in reverse order: services first, engines last.
 * A pid that belongs to another process by now is not touched. Answers the names of what it ended.
 */
export const endOrphans = async (home, tell = () => {}, { keepRecord = false } = {}) => {
  const recorded = liveChildren(home).reverse();
  await endEach(recorded, tell);
  const strays = findStrays(home);
  await endEach(strays, tell);
  if (!keepRecord) rmSync(homeLayout(home).childrenFile, { force: true });
  return [...recorded, ...strays].map((orphan) => orphan.name);
};

const endEach = async (orphans, tell) => {
  for (const orphan of orphans) {
    tell(`ending ${orphan.name} (pid ${orphan.pid}), left by a supervisor that was killed`);
    const outcome = await terminate(orphan, { signal: orphan.stopSignal, graceMs: orphan.graceMs });
    // What it had started itself (a sandbox's cells) is in its process group.
    if (outcome !== 'gone') endGroup(orphan.pid);
  }
};

/** Kills what is left of the process group of a process that has just ended. */
export const endGroup = (pid) => {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH' && error.code !== 'EPERM') throw error;
  }
};

const marked = (pid, mark) => {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(mark);
  } catch {
    return false; // it has just ended, or is not ours to look into
  }
};

/** The parent of a live process, null for one that has ended meanwhile. */
const parentOf = (pid) => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return null;
    throw error;
  }
};

/**
 * Children of this home that a supervisor had no time to write down: a kill -9 may fall between the two. Of a family,
 * only the eldest, who ends the others. Linux only; elsewhere that moment is a risk that remains.
 */
const findStrays = (home) => {
  if (process.platform !== 'linux') return [];
  const mark = Buffer.from(`${SUPERVISED_HOME}=${home}`).toString('latin1');
  const numbers = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const pids = numbers.filter((pid) => marked(pid, mark)).map(Number);
  const eldest = pids.filter((pid) => pid !== process.pid && !pids.includes(parentOf(pid)));
  return eldest.flatMap((pid) => identify(pid) ?? []).map((identity) => ({ ...STRAY, ...identity }));
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
  if (!existsSync(paths.run)) return [];
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
