import { UserError } from '@antiphon/bootstrap/user-error';
import type { EngineEntry, StackJson } from './stack-json.js';
import { createSignInLink } from './sign-in-link.js';
import { parseArguments } from './stack-options.js';
import { up } from './up.js';
import type { RunningStack } from './up.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

type Row = readonly [name: string, pid: string, port: string, url: string];

const HEADING: Row = ['what', 'pid', 'port', 'where'];
const shown = (value: number | null): string => (value === null ? '-' : String(value));

const engineRow = (name: string, engine: EngineEntry, url = engine.address): Row => [
  engine.version === null ? name : `${name} ${engine.version}`,
  shown(engine.pid),
  shown(engine.port),
  engine.external ? `${url} (external)` : url,
];

const serviceRows = ({ services, urls }: StackJson): Row[] =>
  Object.entries(services).flatMap(([name, entries]) =>
    entries.map(({ id, pid, port, process }, index): Row => {
      const url = name === 'gateway' ? (urls.gateways[index] ?? '') : '';
      const hostedBy = process === undefined ? '' : `  (in ${process})`;
      const health = `http://127.0.0.1:${shown(port)}/readyz${hostedBy}`;
      return [id, shown(pid), shown(port), url === '' ? health : `${url}  ${url.replace(/^http/, 'ws')}/ws`];
    }),
  );

/** Renders the table of services and engines that a start prints. */
const renderTable = (stack: StackJson): string => {
  const { engines, urls } = stack;
  const rows = [
    HEADING,
    ...serviceRows(stack),
    engineRow('PostgreSQL', engines.postgres),
    engineRow('NATS', engines.nats),
    engineRow('Temporal', engines.temporal, urls.temporalUi ?? engines.temporal.address),
  ];
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const renderRow = (row: Row): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  return rows.map(renderRow).join('\n');
};

/**
 * Stops in order at the first signal and by force at the second. Before `attach` it aborts the
 * start.
 */
const listenForSignals = () => {
  const starting = new AbortController();
  let isStopping = false;
  let stop = (_now: boolean): void => starting.abort();
  for (const name of SIGNALS)
    process.on(name, () => {
      console.log(isStopping ? '\nstopping by force' : '\nstopping; once more to stop by force');
      stop(isStopping);
      isStopping = true;
    });
  return { starting: starting.signal, attach: (running: RunningStack) => void (stop = running.requestStop) };
};

const waitForEnd = async (running: RunningStack): Promise<number> => {
  const failure = await running.ended;
  if (failure === null) {
    console.log('stopped');
    return 0;
  }
  console.error(
    `antiphon: the supervisor ended unexpectedly (${failure}). What to do: \`npm stop\` ends the remaining processes, \`npm start\` starts again`,
  );
  return 1;
};

const runUp = async (args: readonly string[]): Promise<number> => {
  const { detach, scale, isHosting, notes } = parseArguments(args);
  for (const note of notes) console.log(`note: ${note}`);
  const signals = listenForSignals();
  const running = await up({
    scale,
    isHosting,
    signal: signals.starting,
    onProgress: (line) => console.log(line),
  });
  signals.attach(running);
  if (running.joined) console.log('this stack runs already; `npm stop` ends it');
  const { urls, adminKeyFile } = running.stack;
  const link = await createSignInLink(running.stack);
  const signIn = link === null ? '' : `\nsign in once, within 5 minutes: ${link}`;
  console.log(
    `\n${renderTable(running.stack)}\n\ndashboard: ${urls.dashboard ?? '-'}${signIn}\nadmin key: ${adminKeyFile}\nready`,
  );
  if (running.joined) return 0;
  if (!detach) return waitForEnd(running);
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

// A reader such as `| head` may close its end, which is no reason to end a start.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

await main();
