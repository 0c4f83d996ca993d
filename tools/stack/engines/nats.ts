import { createConnection } from 'node:net';
import { join } from 'node:path';
import { writeFileAtomic } from '@antiphon/bootstrap/files';
import type { ResolvedEngine } from '@antiphon/bootstrap/types';
import { createStickyPort } from '../home/sticky-port.js';
import type { Incarnation } from '../process/supervised-process.js';
import { retryUntil } from './engine.js';
import type { EngineContext, ManagedEngine } from './engine.js';
import { natsConfig } from './nats-config.js';

const USUAL_PORT = 14222;

/** The server greets every connection with a line that begins with INFO. */
export const awaitNatsGreeting = (host: string, port: number, timeoutMs = 2_000): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = createConnection({ host, port, timeout: timeoutMs });
    const end = (settle: () => void) => () => {
      socket.destroy();
      settle();
    };
    socket.once(
      'timeout',
      end(() => reject(new Error('it does not answer'))),
    );
    socket.once('error', (error) => reject(error));
    socket.once('data', (data) =>
      end(() =>
        data.toString('latin1').startsWith('INFO ')
          ? resolve()
          : reject(new Error('it is not a NATS server')),
      )(),
    );
  });

/** nats-server with JetStream in the home. */
export const natsEngine = (
  context: EngineContext,
  program: ResolvedEngine,
  { anonymous = false }: { readonly anonymous?: boolean } = {},
): ManagedEngine => {
  const { paths, credentials, ports, usualPorts } = context;
  const port = createStickyPort({ ports, name: 'NATS', preferred: usualPorts ? USUAL_PORT : 0 });
  const configFile = join(paths.nats, 'nats-server.conf');
  const prepare = async (): Promise<Incarnation> => {
    const storeDir = join(paths.nats, 'jetstream');
    const options = { port: await port.ensure(), storeDir, credentials, anonymous };
    writeFileAtomic(configFile, natsConfig(options));
    return {
      launch: {
        command: join(program.folder, 'nats-server'),
        args: ['-c', configFile],
        env: { PATH: process.env['PATH'], HOME: paths.nats },
        cwd: paths.nats,
        home: paths.home,
        logFile: join(paths.logs, 'nats.log'),
      },
    };
  };
  return {
    version: program.version,
    address: () => `127.0.0.1:${port.current()}`,
    spec: {
      name: 'NATS',
      rank: 1,
      stopSignal: 'SIGTERM',
      graceMs: 10_000,
      readyTimeoutMs: 60_000,
      attempts: 3,
      prepare,
      whenReady: async (_child, signal) => {
        await retryUntil(signal, () => awaitNatsGreeting('127.0.0.1', port.current()));
        port.settle();
        return port.current();
      },
    },
  };
};
