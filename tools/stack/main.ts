import { UserError } from '@antiphon/bootstrap/user-error';
import { renderTable } from './render-table.js';
import { parseArguments } from './stack-options.js';
import { up } from './up.js';
import type { RunningStack } from './up.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The first Ctrl-C stops in order, the second one at once; `stop` is what they mean at the moment. */
const listenForSignals = () => {
  const starting = new AbortController();
  let asked = false;
  let stop = (_now: boolean): void => starting.abort();
  for (const name of SIGNALS)
    process.on(name, () => {
      console.log(asked ? '\nstopping by force' : '\nstopping; once more to stop by force');
      stop(asked);
      asked = true;
    });
  return { starting: starting.signal, hand: (running: RunningStack) => void (stop = running.requestStop) };
};

const holdInForeground = async (running: RunningStack): Promise<number> => {
  const failure = await running.ended;
  if (failure === null) {
    console.log('stopped');
    return 0;
  }
  console.error(
    `antiphon: the supervisor ended unexpectedly (${failure}); \`npm stop\` ends what it left, \`npm start\` starts again`,
  );
  return 1;
};

const runUp = async (args: readonly string[]): Promise<number> => {
  const { detach, scale } = parseArguments(args);
  const signals = listenForSignals();
  const running = await up({ scale, signal: signals.starting, onProgress: (line) => console.log(line) });
  signals.hand(running);
  if (running.joined) console.log('this stack runs already; `npm stop` ends it');
  console.log(`\n${renderTable(running.stack)}\n\nready`);
  if (running.joined) return 0;
  if (!detach) return holdInForeground(running);
  running.detach();
  return 0;
};

const main = async (): Promise<void> => {
  const [command, ...args] = process.argv.slice(2);
  try {
    if (command !== 'up') throw new UserError(`unknown command "${command ?? ''}"`, { exitCode: 2 });
    process.exitCode = await runUp(args);
  } catch (error) {
    console.error(error instanceof UserError ? `antiphon: ${error.message}` : error);
    process.exitCode = error instanceof UserError ? error.exitCode : 1;
  }
};

// Whoever reads our output may have read enough (`| head`); that is no reason to end a start.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

await main();
