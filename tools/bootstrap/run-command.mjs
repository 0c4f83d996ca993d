import { spawn } from 'node:child_process';

const TAIL_CHARS = 8_000;
const KILL_AFTER_MS = 5_000;

/** A command that failed, with the end of what it printed. */
export class CommandError extends Error {
  constructor(command, outcome, output) {
    const last = output.trim().split('\n').slice(-12).join('\n');
    super(`${command} ${outcome}${last === '' ? '' : `:\n${last}`}`);
    this.name = 'CommandError';
    this.output = output;
  }
}

/** Asks a whole process group to end, and kills it if it does not. */
const endGroup = (pid) => {
  const send = (signal) => {
    try {
      process.kill(-pid, signal);
    } catch (error) {
      if (error.code !== 'ESRCH') throw error;
    }
  };
  send('SIGTERM');
  return setTimeout(() => send('SIGKILL'), KILL_AFTER_MS);
};

/** Ends the child's group on abort or after `timeoutMs`; `stop` ends the watching. */
const watchDeadline = (child, signal, timeoutMs) => {
  const timers = [];
  const end = () => child.pid !== undefined && timers.push(endGroup(child.pid));
  if (timeoutMs !== undefined) timers.push(setTimeout(end, timeoutMs));
  signal?.addEventListener('abort', end, { once: true });
  return {
    stop: () => {
      timers.forEach(clearTimeout);
      signal?.removeEventListener('abort', end);
    },
  };
};

/**
 * Runs a command in a process group of its own, and resolves to the end of its output.
 * `adopt(pid)` is told of the child at once, so that a lock's next holder can end it if we are killed.
 */
export const runCommand = (file, args, { cwd, env, uid, gid, signal, adopt, timeoutMs, onLine } = {}) =>
  new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const name = [file.split('/').pop(), ...args].join(' ');
    const child = spawn(file, args, {
      cwd,
      env,
      uid,
      gid,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const deadline = watchDeadline(child, signal, timeoutMs);
    let output = '';
    const collect = (chunk) => {
      output = (output + chunk).slice(-TAIL_CHARS);
      onLine?.(String(chunk).trim().split('\n').pop());
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.once('spawn', () => adopt?.(child.pid));
    child.once('error', (error) => {
      deadline.stop();
      reject(new CommandError(name, `could not be run (${error.code})`, ''));
    });
    child.once('close', (code, killedBy) => {
      deadline.stop();
      if (signal?.aborted) reject(signal.reason);
      else if (code === 0) resolve(output);
      else
        reject(
          new CommandError(
            name,
            killedBy === null ? `ended with exit code ${code}` : `was ended by ${killedBy}`,
            output,
          ),
        );
    });
  });
