import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { readJson } from './files.mjs';
import { lockHolder, tryLock } from './lock.mjs';
import { identify, isAlive, signalGroup, signalProcess, terminate, waitForExit } from './processes.mjs';
import { homeLayout } from './project.mjs';

/** Longer than the sum of the supervisor's own deadlines. */
const SUPERVISOR_GRACE_MS = 120_000;

/** Variable in the environment of every child of a supervisor; its value is the home. */
export const SUPERVISED_HOME = 'ANTIPHON_SUPERVISED_HOME';

/** Stops a child without a record: engines and services both handle SIGINT. */
const UNRECORDED = /** @type {const} */ ({ name: 'a process', stopSignal: 'SIGINT', graceMs: 20_000 });

/** @type {(home: string) => import('./types.js').RecordedChild[]} */
const liveChildren = (home) => (readJson(homeLayout(home).childrenFile) ?? []).filter(isAlive);

const endEach = async (orphans, note) => {
  for (const orphan of orphans) {
    note(`ending ${orphan.name} (pid ${orphan.pid}), left by a supervisor that was killed`);
    const outcome = await terminate(orphan, { signal: orphan.stopSignal, graceMs: orphan.graceMs });
    // Children of its own, such as a sandbox's cells, are in its process group.
    if (outcome !== 'gone') signalGroup(orphan.pid);
  }
};

const isMarked = (pid, mark) => {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(mark);
  } catch {
    return false; // it has just ended, or belongs to another user
  }
};

/** Returns the parent of a live process, null for one that has ended. */
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
 * Returns the pids whose environment has `mark`, a `NAME=value`. Finds none outside of Linux.
 * @type {(mark: string) => number[]}
 */
export const findMarked = (mark) => {
  if (process.platform !== 'linux') return [];
  const latin = Buffer.from(mark).toString('latin1');
  const numbers = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return numbers.filter((pid) => isMarked(pid, latin)).map(Number);
};

/**
 * Finds children that a supervisor was killed before it could record. Returns only the topmost of
 * a process tree, which ends the others. Linux only.
 */
const findUnrecorded = (home) => {
  const pids = findMarked(`${SUPERVISED_HOME}=${home}`);
  const topmost = pids.filter((pid) => {
    const parent = parentOf(pid);
    return pid !== process.pid && (parent === null || !pids.includes(parent));
  });
  return topmost.flatMap((pid) => identify(pid) ?? []).map((identity) => ({ ...UNRECORDED, ...identity }));
};

/**
 * Ends the processes that a killed supervisor left, services before engines. Does not touch a pid
 * that another process has reused. Returns the names of the ended processes.
 * @type {import('./types.js').EndOrphans}
 */
export const endOrphans = async (home, note = () => {}, { keepRecord = false } = {}) => {
  const recorded = liveChildren(home).reverse();
  await endEach(recorded, note);
  const unrecorded = findUnrecorded(home);
  await endEach(unrecorded, note);
  if (!keepRecord) rmSync(homeLayout(home).childrenFile, { force: true });
  return [...recorded, ...unrecorded].map((orphan) => orphan.name);
};

const stopSupervisor = async (supervisor, note) => {
  if (!signalProcess(supervisor, 'SIGTERM')) return;
  note(`stopping (supervisor pid ${supervisor.pid})`);
  if (await waitForExit(supervisor, SUPERVISOR_GRACE_MS)) return;
  note('the supervisor did not stop in time; ending every process by force');
  signalProcess(supervisor, 'SIGKILL');
  await waitForExit(supervisor, 5_000);
};

const cleanUp = async (home, note) => {
  const paths = homeLayout(home);
  if (!existsSync(paths.run)) return [];
  // Under the lock: otherwise the children of a start at this moment would look like orphans.
  const attempt = await tryLock(paths.lockFile);
  if (!attempt.acquired) return [];
  try {
    const orphans = await endOrphans(home, note);
    rmSync(paths.stackFile, { force: true });
    return orphans;
  } finally {
    attempt.lock.release();
  }
};

/**
 * Stops the stack of a home gracefully and ends all of its processes, also after a kill -9 of its
 * supervisor. Stopping a stack that does not run is no error.
 * @type {import('./types.js').StopStack}
 */
export const stopStack = async (home, note = () => {}) => {
  const supervisor = lockHolder(homeLayout(home).lockFile);
  if (supervisor !== null) await stopSupervisor(supervisor, note);
  const orphans = await cleanUp(home, note);
  return { wasRunning: supervisor !== null || orphans.length > 0 };
};
