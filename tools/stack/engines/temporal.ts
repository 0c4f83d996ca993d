import { join } from 'node:path';
import type { ResolvedEngine } from '@antiphon/bootstrap/engines';
import { createStickyPort } from '../home/sticky-port.js';
import type { Incarnation } from '../process/supervised-process.js';
import { retryUntil } from './engine.js';
import type { EngineContext, ManagedEngine } from './engine.js';
import { describeNamespace, SEARCH_ATTRIBUTES, TEMPORAL_NAMESPACE } from './temporal-namespace.js';

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

/** Temporal's server with its own database in the home, and its web UI. */
export const temporalEngine = (context: EngineContext, program: ResolvedEngine): TemporalEngine => {
  const { paths, ports, usualPorts } = context;
  const port = createStickyPort({ ports, name: 'Temporal', preferred: usualPorts ? USUAL_PORT : 0 });
  const uiPort = createStickyPort({ ports, name: 'Temporal UI', preferred: usualPorts ? USUAL_UI_PORT : 0 });
  const address = (): string => `127.0.0.1:${port.current()}`;
  const prepare = async (): Promise<Incarnation> => ({
    launch: {
      command: join(program.folder, 'temporal'),
      args: argumentsFor(await port.ensure(), await uiPort.ensure(), join(paths.temporal, 'temporal.db')),
      env: { PATH: process.env['PATH'], HOME: paths.temporal },
      cwd: paths.temporal,
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
        await retryUntil(signal, () => describeNamespace(address()));
        port.settle();
        uiPort.settle();
        return port.current();
      },
    },
  };
};
