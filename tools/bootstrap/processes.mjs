import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 20;
const OUTPUT_CHARS = 8_000;
const KILL_AFTER_MS = 5_000;
const PARENT_POLL_MS = 500;
const PARENT = process.ppid;
/** Exit code of a command that a signal ended. */
export const SIGNAL_EXIT = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };
/** @type {string | undefined} */
let bootId;

/** Reads the start time in ticks since boot. A zombie counts as dead, reaped or not. */
const linuxStart = (pid) => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  bootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  // The command's name, in parentheses, may contain spaces: count fields from the last ')'.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' || fields[0] === 'X' ? null : `${bootId}/${fields[19]}`;
};

const psStart = (pid) => {
  const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
  return line === '' || line.startsWith('Z') ? null : line.replace(/^\S+\s+/, '');
};

/**
 * Returns the start time of a live process as an opaque text, else null. The pid and the start
 * identify a process even after its pid was reused.
 * @type {(pid: number) => string | null}
 */
export const processStart = (pid) => {
  try {
    return process.platform === 'linux' ? linuxStart(pid) : psStart(pid);
  } catch {
    return null; // no such process: /proc has no folder for it, ps exits 1
  }
};

/** @type {(pid: number) => import('./types.js').ProcessIdentity | null} */
export const identify = (pid) => {
  const start = processStart(pid);
  return start === null ? null : { pid, start };
};

/** @type {(identity: import('./types.js').ProcessIdentity) => boolean} */
export const isAlive = (identity) => processStart(identity.pid) === identity.start;

/**
 * Sends a signal only if this very process is alive. `group` signals its process group.
 * @type {import('./types.js').SignalProcess}
 */
export const signalProcess = (identity, signal, { group = false } = {}) => {
  if (!isAlive(identity)) return false;
  try {
    process.kill(group ? -identity.pid : identity.pid, signal);
    return true;
  } catch (error) {
    if (error.code === 'ESRCH') return group ? signalProcess(identity, signal) : false;
    throw error;
  }
};

/**
 * Calls `onEnd` once the parent of this process has ended. The kernel reports it by a new parent.
 * @type {import('./types.js').WatchParent}
 */
export const watchParent = (onEnd) => {
  const timer = setInterval(() => {
    if (process.ppid === PARENT) return;
    clearInterval(timer);
    onEnd();
  }, PARENT_POLL_MS);
  timer.unref();
};

/**
 * Waits for the end of a process. Resolves to false after `timeoutMs`.
 * @type {import('./types.js').WaitForExit}
 */
export const waitForExit = async (identity, timeoutMs) => {
  const deadline = Date.now() + timeoutMs;
  while (isAlive(identity)) {
    if (Date.now() >= deadline) return false;
    await sleep(POLL_MS);
  }
  return true;
};

/**
 * Ends a process with `signal`, and with SIGKILL after `graceMs`. Returns `gone` for a dead one.
 * @type {import('./types.js').Terminate}
 */
export const terminate = async (identity, { signal = 'SIGTERM', graceMs = 10_000, group = false } = {}) => {
  if (!signalProcess(identity, signal, { group })) return 'gone';
  if (await waitForExit(identity, graceMs)) return 'stopped';
  signalProcess(identity, 'SIGKILL', { group });
  await waitForExit(identity, 5_000);
  return 'killed';
};

/**
 * Sends a signal to a process group; a group without processes is no error.
 * @type {import('./types.js').SignalGroup}
 */
export const signalGroup = (pid, signal = 'SIGKILL') => {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH' && error.code !== 'EPERM') throw error;
  }
};

/** A command that failed, with the end of its output. */
export class CommandError extends Error {
  constructor(/** @type {string} */ command, /** @type {string} */ outcome, /** @type {string} */ output) {
    const last = output.trim().split('\n').slice(-12).join('\n');
    super(`${command} ${outcome}${last === '' ? '' : `:\n${last}`}`);
    this.name = 'CommandError';
    this.output = output;
  }
}

/** Ends the child's process group on abort or after `timeoutMs`. Returns a cancel function. */
const watchDeadline = (child, signal, timeoutMs) => {
  const timers = [];
  const end = () => {
    if (child.pid === undefined) return;
    signalGroup(child.pid, 'SIGTERM');
    timers.push(setTimeout(() => signalGroup(child.pid), KILL_AFTER_MS));
  };
  if (timeoutMs !== undefined) timers.push(setTimeout(end, timeoutMs));
  signal?.addEventListener('abort', end, { once: true });
  return () => {
    timers.forEach(clearTimeout);
    signal?.removeEventListener('abort', end);
  };
};

/**
 * Runs a command in its own process group. Resolves to the end of its output; rejects with a
 * CommandError unless it exits with 0.
 * @type {import('./types.js').RunCommand}
 */
export const runCommand = (file, args, { signal, adopt, timeoutMs, onLine, ...options } = {}) =>
  new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const name = [file.split('/').pop(), ...args].join(' ');
    const child = spawn(file, args, { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    const cancelDeadline = watchDeadline(child, signal, timeoutMs);
    let output = '';
    const collect = (chunk) => {
      output = (output + chunk).slice(-OUTPUT_CHARS);
      onLine?.(String(chunk).trim().split('\n').pop() ?? '');
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.once('spawn', () => adopt?.(/** @type {number} */ (child.pid)));
    child.once('error', (/** @type {NodeJS.ErrnoException} */ error) => {
      cancelDeadline();
      reject(new CommandError(name, `could not be run (${error.code})`, ''));
    });
    child.once('close', (code, killedBy) => {
      cancelDeadline();
      const outcome = killedBy === null ? `ended with exit code ${code}` : `was ended by ${killedBy}`;
      if (signal?.aborted) reject(signal.reason);
      else if (code === 0) resolve(output);
      else reject(new CommandError(name, outcome, output));
    });
  });
