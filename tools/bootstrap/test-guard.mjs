import { rmSync } from 'node:fs';
import { identify, waitForExit } from './processes.mjs';
import { endTestRun, FINISHED } from './test-run.mjs';

/*
 * The guard of a test run. Its standard input is a pipe from the process of Jest, which closes when
 * that process ends, however it ends.
 */
const folder = process.argv[2] ?? '';
const EXIT_MS = 10_000;
const run = identify(process.ppid);
// The terminal of the run may be gone.
process.stderr.on('error', () => {});

const readInput = async () => {
  let text = '';
  try {
    for await (const chunk of process.stdin) text += chunk;
  } catch {
    // A killed process may reset its end of the pipe.
  }
  return text;
};

if ((await readInput()) !== FINISHED) {
  // The pipe closes before the process is gone, which holds the lock of its engines until then.
  if (run !== null) await waitForExit(run, EXIT_MS);
  await endTestRun(folder, (line) => process.stderr.write(`${line}\n`));
}
rmSync(folder, { recursive: true, force: true });
