import { existsSync, readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { writeFileAtomic, writeJsonAtomic } from '@antiphon/bootstrap/files';
import type { ResolvedEngine } from '@antiphon/bootstrap/types';
import { SERVICES } from '@antiphon/contracts/messaging';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { StickyPort } from '../home/ports.js';
import { IDLE_START_MS } from '../process/idle-process.js';
import { SupervisedProcess } from '../process/supervised-process.js';
import type { Incarnation } from '../process/supervised-process.js';
import { addressOfUrl, checkExternal, externalEntry, managedEntry, retryUntilReady } from './engine.js';
import type { EngineContext, EngineOptions, EngineProcess, EngineSource, StackEngine } from './engine.js';
import { NATS_OPERATOR, NATS_SYSTEM, natsConfig } from './nats-config.js';
import { checkNatsHealth } from './nats-health.js';

const USUAL_PORT = 14222;
const PROTOCOL_PORT = 4222;

/** Waits for the line with INFO that a server sends to every connection. */
const waitForGreeting = (host: string, port: number, timeoutMs = 2_000): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = createConnection({ host, port, timeout: timeoutMs });
    const fail = (reason: string): void => {
      socket.destroy();
      reject(new Error(reason));
    };
    socket.once('timeout', () => fail('it does not answer'));
    socket.once('error', reject);
    socket.once('data', (data) => {
      if (!data.toString('latin1').startsWith('INFO ')) return fail('it is not a NATS server');
      socket.destroy();
      resolve();
    });
  });

/**
 * Returns the number of threads that run the server's code at once: half of the cores. More of them
 * mostly wake each other for a few messages, and every core that they take is one of the services.
 */
export const natsThreads = (cores: number): number => Math.max(1, Math.floor(cores / 2));

/** Returns how nats-server with JetStream is run in a home. */
export const natsProcess = (
  { paths, credentials, ports, usualPorts }: EngineContext,
  program: ResolvedEngine,
  { anonymous = false }: { readonly anonymous?: boolean } = {},
): EngineProcess => {
  const port = new StickyPort({ ports, name: 'NATS', preferred: usualPorts ? USUAL_PORT : 0 });
  const configFile = join(paths.nats, 'nats-server.conf');
  const system = { user: NATS_SYSTEM, password: credentials.natsOperator };
  const prepare = async (): Promise<Incarnation> => {
    const storeDir = join(paths.nats, 'jetstream');
    const options = { port: await port.ensure(), storeDir, credentials, anonymous };
    const config = natsConfig(options);
    // A restart on a full disk uses the file that is there.
    if (!existsSync(configFile) || readFileSync(configFile, 'utf8') !== config)
      writeFileAtomic(configFile, config);
    return {
      launch: {
        command: join(program.folder, 'nats-server'),
        args: ['-c', configFile],
        env: {
          PATH: process.env['PATH'],
          HOME: paths.nats,
          GOMAXPROCS: process.env['GOMAXPROCS'] ?? String(natsThreads(availableParallelism())),
        },
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
      idleTimeoutMs: IDLE_START_MS,
      attempts: 3,
      prepare,
      whenReady: async (_child, signal) => {
        await retryUntilReady(signal, () => waitForGreeting('127.0.0.1', port.current()));
        port.settle();
        return port.current();
      },
      checkHealth: () => checkNatsHealth(port.current(), system, paths.nats),
    },
  };
};

export interface NatsAddress {
  /** Without credentials. */
  readonly url: string;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
}

export interface NatsEngine extends StackEngine {
  /** Returns the address with the credentials of a service or of the operator. */
  accessFor(user: ServiceName | typeof NATS_OPERATOR): NatsAddress;
}

/** Writes `{url, users: {agent: {user, password}, …, operator: …}}` for people and tools. */
const writeUsers = ({ context }: EngineOptions, accessFor: NatsEngine['accessFor']): void =>
  writeJsonAtomic(context.paths.natsUsersFile, {
    url: accessFor(NATS_OPERATOR).url,
    users: Object.fromEntries(
      [NATS_OPERATOR, ...SERVICES].map((name) => {
        const { user, password } = accessFor(name as ServiceName);
        return [name, { user, password }];
      }),
    ),
  });

const manageNats = (options: EngineOptions, program: ResolvedEngine): NatsEngine => {
  const { context, hooks, progress } = options;
  const { spec, version } = natsProcess(context, program);
  const process = new SupervisedProcess(spec, hooks);
  const { natsOperator, services } = context.credentials;
  const accessFor: NatsEngine['accessFor'] = (user) => ({
    url: `nats://127.0.0.1:${process.status().port ?? 0}`,
    user,
    password: user === NATS_OPERATOR ? natsOperator : services[user].nats,
  });
  return {
    process,
    accessFor,
    entry: () => managedEntry(process, version, 'nats://'),
    start: async () => {
      await progress.step('NATS: starting it', () => process.start());
      writeUsers(options, accessFor);
    },
  };
};

/** Checks that a NATS server listens there, and separates the credentials from its URL. */
const checkExternalNats = (value: string): Promise<NatsAddress> =>
  checkExternal(
    'ANTIPHON_NATS_URL',
    () => addressOfUrl(value, PROTOCOL_PORT),
    async () => {
      const url = new URL(value);
      await waitForGreeting(url.hostname, Number(url.port === '' ? PROTOCOL_PORT : url.port), 5_000);
      const [user, password] = [url.username, url.password].map(decodeURIComponent);
      url.username = '';
      url.password = '';
      return { url: url.href.replace(/\/$/, ''), ...(user ? { user, password: password ?? '' } : {}) };
    },
  );

const useExternalNats = (options: EngineOptions, value: string): NatsEngine => {
  let address: NatsAddress = { url: value };
  const accessFor = (): NatsAddress => address;
  return {
    process: null,
    accessFor,
    entry: () => externalEntry(`nats://${addressOfUrl(value, PROTOCOL_PORT)}`),
    start: async () => {
      address = await checkExternalNats(value);
      writeUsers(options, accessFor);
    },
  };
};

/**
 * Creates NATS with one user per service; an external one is used with the credentials of its URL.
 */
export const createNats = (options: EngineOptions, source: EngineSource): NatsEngine =>
  source.program === undefined
    ? useExternalNats(options, source.external)
    : manageNats(options, source.program);
