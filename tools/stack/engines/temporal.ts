import { createConnection } from 'node:net';
import { join } from 'node:path';
import { runCommand } from '@antiphon/bootstrap/processes';
import type { ResolvedEngine } from '@antiphon/bootstrap/types';
import { createStickyPort } from '../home/sticky-port.js';
import type { Incarnation } from '../process/supervised-process.js';
import { retryUntil } from './engine.js';
import type { EngineContext, ManagedEngine } from './engine.js';
import { SEARCH_ATTRIBUTES, TEMPORAL_NAMESPACE } from './temporal-namespace.js';

const USUAL_PORT = 17233;
const USUAL_UI_PORT = 18233;

export interface TemporalEngine extends ManagedEngine {
  uiUrl(): string;
}

const argumentsFor = (port: number, uiPort: number, database: string): string[] => [
  'server',
  'start-dev',
  ...['--ip', '127.0.0.1', '--port', String(port), '--ui-port', String(uiPort)],
  ...['--namespace', TEMPORAL_NAMESPACE, '--db-filename', database, '--log-level', 'warn'],
  ...['--sqlite-pragma', 'journal_mode=wal', '--sqlite-pragma', 'synchronous=normal'],
  ...['--dynamic-config-value', 'system.enableActivityEagerExecution=true'],
  ...SEARCH_ATTRIBUTES.flatMap((name) => ['--search-attribute', `${name}=Keyword`]),
];

const PROBE_MS = 5_000;

/** Asking costs a process each time, so first it has to listen. */
const awaitListener = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = createConnection({ host: '127.0.0.1', port });
    socket.once('connect', () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });

/** Asked by its own command line: the client library would cost the supervisor 60 MB for this one question. */
const describeNamespace = async (program: string, address: string): Promise<void> => {
  const question = ['operator', 'namespace', 'describe', '--namespace', TEMPORAL_NAMESPACE];
  await runCommand(program, [...question, '--address', address], { timeoutMs: PROBE_MS });
};

/** Temporal's server with its own database in the home, and its web UI. */
export const temporalEngine = (context: EngineContext, program: ResolvedEngine): TemporalEngine => {
  const { paths, ports, usualPorts } = context;
  const port = createStickyPort({ ports, name: 'Temporal', preferred: usualPorts ? USUAL_PORT : 0 });
  const uiPort = createStickyPort({ ports, name: 'Temporal UI', preferred: usualPorts ? USUAL_UI_PORT : 0 });
  const address = (): string => `127.0.0.1:${port.current()}`;
  const command = join(program.folder, 'temporal');
  const prepare = async (): Promise<Incarnation> => ({
    launch: {
      command,
      args: argumentsFor(await port.ensure(), await uiPort.ensure(), join(paths.temporal, 'temporal.db')),
      env: { PATH: process.env['PATH'], HOME: paths.temporal },
      cwd: paths.temporal,
      home: paths.home,
      logFile: join(paths.logs, 'temporal.log'),
    },
  });
  return {
    version: program.version,
    address,
    uiUrl: () => `http://127.0.0.1:${uiPort.current()}`,
    spec: {
      name: 'Temporal',
      rank: 2,
      stopSignal: 'SIGTERM',
      graceMs: 10_000,
      readyTimeoutMs: 60_000,
      attempts: 3,
      prepare,
      whenReady: async (_child, signal) => {
        await retryUntil(signal, () => awaitListener(port.current()));
        await retryUntil(signal, () => describeNamespace(command, address()));
        port.settle();
        uiPort.settle();
        return port.current();
      },
    },
  };
};
