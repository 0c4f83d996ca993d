import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { readJson } from './files.mjs';
import { tryLock } from './lock.mjs';
import { identify, SIGNAL_EXIT, terminate, watchParent } from './processes.mjs';
import { homeLayout, projectRoot } from './project.mjs';
import { endOrphans, findMarked, stopStack } from './stop-stack.mjs';

/**
 * Variable with the folder of a test run. All processes of the run inherit it, and the folder has a
 * record of each home.
 */
export const TEST_RUN = 'ANTIPHON_TEST_RUN';
const GUARD = join(projectRoot, 'tools/bootstrap/test-guard.mjs');
/** Text that the guard of a run receives when the run has stopped its engines itself. */
export const FINISHED = 'finished';
const SUPERVISOR_GRACE_MS = 20_000;
const MAX_ROUNDS = 5;

/**
 * Records a folder that the guard removes, with its processes, when the run of this process is
 * interrupted. Without a run it does nothing.
 * @type {import('./types.js').RecordHome}
 */
export const recordHome = (home, kind) => {
  const run = process.env[TEST_RUN];
  if (run) writeFileSync(join(run, `${basename(home)}.json`), JSON.stringify({ home, kind }));
};

const recordedHomes = (folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    // A record may be cut by the kill of its writer.
    .flatMap((name) => readJson(join(folder, name)) ?? []);

const isSupervisor = (pid) => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('supervisor-main.js');
  } catch {
    return false; // it has just ended
  }
};

/** Kills workers and commands of specs. A supervisor stops its services and engines in order. */
const endMarked = async (folder, note) => {
  // Again, because a process may have started another one before its own end.
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const pids = findMarked(`${TEST_RUN}=${folder}`).filter((pid) => pid !== process.pid);
    const found = pids.flatMap((pid) => identify(pid) ?? []);
    if (found.length === 0) return;
    note(`ending ${found.length} processes of an interrupted test run`);
    await Promise.all(
      found.map((identity) =>
        isSupervisor(identity.pid)
          ? terminate(identity, { signal: 'SIGTERM', graceMs: SUPERVISOR_GRACE_MS })
          : terminate(identity, { signal: 'SIGKILL' }),
      ),
    );
  }
};

const removeHome = async ({ home, kind }, note) => {
  if (!existsSync(home)) return;
  if (kind === 'stack') await stopStack(home, note);
  // Under the lock: a later run may use the folder of the engines by now.
  const attempt = await tryLock(homeLayout(home).lockFile);
  if (!attempt.acquired) return;
  await endOrphans(home, note);
  rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
};

/**
 * Ends the processes of an interrupted run and removes its homes. A failure is noted, and the other
 * homes are removed.
 * @type {import('./types.js').EndTestRun}
 */
export const endTestRun = async (folder, note) => {
  const remove = (record) =>
    removeHome(record, note).catch((error) => note(`could not remove ${record.home}: ${error.message}`));
  // First, so that the next run sees the lock and takes another folder.
  const engines = recordedHomes(folder).filter(({ kind }) => kind === 'engines');
  const endProcesses = endMarked(folder, note).catch((error) => note(error.message));
  await Promise.all([endProcesses, ...engines.map(remove)]);
  await Promise.all(
    recordedHomes(folder)
      .filter(({ kind }) => kind !== 'engines')
      .map(remove),
  );
};

/**
 * Starts the guard of a test run, in a session of its own. It ends the processes of the run when
 * this process ends in any way, also by SIGKILL. A signal, or the end of the parent, ends this
 * process. Returns a function that ends the guard after the run.
 * @type {import('./types.js').StartTestRun}
 */
export const startTestRun = (env) => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-run-'));
  env[TEST_RUN] = folder;
  const guard = spawn(process.execPath, [GUARD, folder], {
    detached: true,
    // A reader of the output of the run waits for the guard too.
    stdio: ['pipe', 'ignore', 'inherit'],
    // Without the variable of this run or of an outer run, by which the guard would be ended.
    env: { PATH: env.PATH },
  });
  guard.unref();
  const input = /** @type {import('node:net').Socket} */ (guard.stdin);
  input.unref();
  input.on('error', () => {}); // the guard was killed
  const exits = /** @type {[NodeJS.Signals, number][]} */ (Object.entries(SIGNAL_EXIT));
  for (const [name, code] of exits) process.on(name, () => process.exit(code));
  watchParent(() => process.exit(SIGNAL_EXIT.SIGHUP));
  return () =>
    new Promise((resolve) => {
      guard.ref();
      if (guard.exitCode !== null || guard.signalCode !== null) return resolve();
      guard.once('exit', () => resolve());
      input.end(FINISHED);
    });
};
