import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { PEER_ENVIRONMENT } from '../lib/processes.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const READY_MS = 60_000;
/** Characters of a host's error output that an error of ours shows. */
const ERRORS_KEPT = 2_000;

/**
 * Runs a host and starts it again as soon as it ends, without any delay. A host sends `ready` when
 * it serves.
 */
export const supervise = async (host, env) => {
  let child;
  let isClosing = false;
  let isReady = false;
  let starts = 0;
  let lastErrors = '';
  const start = () => {
    isReady = false;
    starts += 1;
    child = fork(here(`./hosts/${host}.mjs`), {
      env: { ...process.env, ...PEER_ENVIRONMENT, ...env },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    let errors = '';
    child.stderr.on('data', (data) => (lastErrors = errors = `${errors}${data}`.slice(-ERRORS_KEPT)));
    child.once('message', () => (isReady = true));
    child.once('exit', () => {
      if (!isClosing) start();
    });
  };
  const whenReady = async () => {
    const until = performance.now() + READY_MS;
    while (!isReady) {
      if (performance.now() > until)
        throw new Error(`${host} did not become ready, start ${starts}: ${lastErrors}`);
      await wait(10);
    }
  };
  start();
  await whenReady();
  return {
    /** Ends the process as a crash does. `whenReady` then waits for the next one. */
    kill: () => {
      isReady = false;
      child.kill('SIGKILL');
    },
    whenReady,
    close: async () => {
      isClosing = true;
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
};
