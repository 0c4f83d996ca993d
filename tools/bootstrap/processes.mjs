import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const POLL_MS = 20;
let bootId;

const readBootId = () => {
  bootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return bootId;
};

/** Linux: the start time in ticks since boot. A zombie is dead: in a container nobody may ever reap it. */
const linuxStart = (pid) => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The command's name (in parentheses) may contain anything, so count fields from the last ')'.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' || fields[0] === 'X' ? null : `${readBootId()}/${fields[19]}`;
};

const psStart = (pid) => {
  const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
  return line === '' || line.startsWith('Z') ? null : line.replace(/^\S+\s+/, '');
};

/**
 * When a process began, as an opaque text: with the pid it names one process for good, so that a pid that was
 * given to another process since is never taken for the old one. Null when there is no such (live) process.
 */
export const processStart = (pid) => {
  try {
    return process.platform === 'linux' ? linuxStart(pid) : psStart(pid);
  } catch {
    return null; // no such process: /proc has no folder for it, ps exits 1
  }
};

/** @returns {{pid: number, start: string} | null} */
export const identify = (pid) => {
  const start = processStart(pid);
  return start === null ? null : { pid, start };
};

export const isAlive = (identity) => processStart(identity.pid) === identity.start;

/** Sends a signal if (and only if) that very process still lives; `group` reaches its process group as well. */
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

/** Resolves to true once the process is gone, to false when `timeoutMs` have passed. */
export const waitForExit = async (identity, timeoutMs) => {
  const deadline = Date.now() + timeoutMs;
  while (isAlive(identity)) {
    if (Date.now() >= deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return true;
};

/**
 * Ends a process: asks with `signal`, and kills after `graceMs`.
 * @returns {Promise<'gone' | 'stopped' | 'killed'>} `gone`: it did not live any more.
 */
export const terminate = async (identity, { signal = 'SIGTERM', graceMs = 10_000, group = false } = {}) => {
  if (!signalProcess(identity, signal, { group })) return 'gone';
  if (await waitForExit(identity, graceMs)) return 'stopped';
  signalProcess(identity, 'SIGKILL', { group });
  await waitForExit(identity, 5_000);
  return 'killed';
};
