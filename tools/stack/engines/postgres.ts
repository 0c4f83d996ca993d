import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomic } from '@antiphon/bootstrap/files';
import { identify, terminate } from '@antiphon/bootstrap/processes';
import type { HomeLayout } from '@antiphon/bootstrap/project';
import type { ResolvedEngine } from '@antiphon/bootstrap/types';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { withRole } from '@antiphon/database';
import pg from 'pg';
import { refuseEmptyDatabase } from '../home/lost-log.js';
import { StickyPort } from '../home/ports.js';
import { SupervisedProcess } from '../process/supervised-process.js';
import type { Incarnation } from '../process/supervised-process.js';
import { ensureDatabase, migrateDatabase, setPasswords } from '../supervisor/database.js';
import type { LoginRole } from '../supervisor/database.js';
import { addressOfUrl, checkExternal, externalEntry, managedEntry, retryUntilReady } from './engine.js';
import type { EngineContext, EngineOptions, EngineProcess, EngineSource, StackEngine } from './engine.js';
import { DATABASE_OWNER, ensureData, hasSmallSegments } from './postgres-data.js';
import { keepSocketFolder, prepareSocketFolder } from './postgres-socket.js';
import { databaseUser, runnableCopy } from './unprivileged-user.js';

const USUAL_PORT = 15432;
const PROTOCOL_PORT = 5432;

/** Differences to PostgreSQL's defaults. Every commit is flushed before it is acknowledged. */
const settings = (port: number, socketFolder: string | null): Record<string, string> => ({
  port: String(port),
  listen_addresses: '127.0.0.1',
  // A list, so that a name with a comma needs quotes.
  unix_socket_directories: socketFolder === null ? '' : `"${socketFolder.replaceAll('"', '""')}"`,
  max_connections: '300',
  shared_buffers: '128MB',
  password_encryption: 'scram-sha-256',
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  // Shrinks the images of pages that follow a checkpoint. Not every build has lz4.
  wal_compression: 'pglz',
  // The stack runs many short statements: compiling one costs more than it saves.
  jit: 'off',
  log_timezone: 'UTC',
  timezone: 'UTC',
});

/** Settings for a write-ahead log of a few MiB, on a disk of less than 1 GiB. */
const SMALL_LOG = { min_wal_size: '2MB', max_wal_size: '8MB' };

const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return ''; // it has just ended, or there is no /proc
  }
};

/**
 * Clears the `postmaster.pid` that a kill -9 left. PostgreSQL refuses to start when another process
 * has reused the pid. A postmaster that still runs there has no supervisor, so it is ended.
 */
const clearStalePid = async (dataDir: string): Promise<void> => {
  const file = join(dataDir, 'postmaster.pid');
  let pid: number;
  try {
    pid = Number(readFileSync(file, 'utf8').split('\n')[0]);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  const identity = identify(pid);
  if (identity === null) return;
  if (commandOf(pid).includes(dataDir)) await terminate(identity, { signal: 'SIGINT', graceMs: 30_000 });
  else if (process.platform === 'linux') rmSync(file, { force: true });
};

/** Returns the URL of a database on a managed PostgreSQL. */
export const localDatabaseUrl = (
  port: number,
  user: string,
  password: string,
  database = 'antiphon',
): string => `postgresql://${user}:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`;

/** Returns the URL with the folder of a Unix socket, which `pg` prefers to the host. */
const overSocket = (url: string, folder: string | null): string =>
  folder === null ? url : `${url}?host=${encodeURIComponent(folder)}`;

/** Opens a connection, runs one statement and closes it. */
const checkConnection = async (connectionString: string, timeoutMs: number): Promise<void> => {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: timeoutMs });
  // A connection that breaks during the check must not end the supervisor.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('select 1');
  } finally {
    await client.end().catch(() => undefined);
  }
};

/** Codes of a server that does not listen yet, that is starting, or that takes its time. */
const STARTING = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'ETIMEDOUT', 'EPIPE', '57P03']);

/** Returns true if the server responds, and another attempt would be refused as well. */
export const isRefusal = (error: unknown): boolean => {
  const { code, message = '' } = error as NodeJS.ErrnoException;
  return !STARTING.has(String(code)) && !/timeout|timed out|terminated/i.test(message);
};

interface ServerOptions {
  readonly bin: string;
  readonly dataDir: string;
  readonly port: number;
  readonly socketFolder: string | null;
}

const launchOf = (
  { bin, dataDir, port, socketFolder }: ServerOptions,
  { home, logs }: HomeLayout,
): Incarnation => {
  const chosen = {
    ...settings(port, socketFolder),
    ...(hasSmallSegments(dataDir) && SMALL_LOG),
  };
  const args = Object.entries(chosen).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  return {
    launch: {
      command: join(bin, 'postgres'),
      args: ['-D', dataDir, ...args],
      env: { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' },
      cwd: '/',
      home,
      logFile: join(logs, 'postgresql.log'),
      ...databaseUser(),
    },
  };
};

export interface PostgresProcess extends EngineProcess {
  /** Returns the folder of its Unix socket after the start; null if it has none. */
  socketFolder(): string | null;
}

/**
 * Returns how PostgreSQL is run on loopback, with a Unix socket where possible. As root it runs as
 * another user.
 */
export const postgresProcess = (
  context: EngineContext,
  { folder, version }: ResolvedEngine,
): PostgresProcess => {
  const { paths, credentials, ports, usualPorts, adopt, note } = context;
  const { homeId, databaseOwner: password } = credentials;
  const port = new StickyPort({ ports, name: 'PostgreSQL', preferred: usualPorts ? USUAL_PORT : 0 });
  let socketFolder: string | null | undefined;
  const prepare = async (): Promise<Incarnation> => {
    const user = databaseUser();
    const bin = await runnableCopy(folder, version, user);
    const dataDir = await ensureData({
      ...{ paths, homeId, password, bin, version, user, adopt, note },
      mayReplaceLostData: context.duringRestore === true,
      endServer: clearStalePid,
    });
    await clearStalePid(dataDir);
    const number = await port.ensure();
    const prepared = await prepareSocketFolder({ dataDir, port: number, user });
    socketFolder = keepSocketFolder(socketFolder, prepared);
    return launchOf({ bin, dataDir, port: number, socketFolder }, paths);
  };
  return {
    version,
    socketFolder: () => socketFolder ?? null,
    address: () => `127.0.0.1:${port.current()}`,
    spec: {
      name: 'PostgreSQL',
      rank: 0,
      // Fast shutdown: ends sessions and writes a checkpoint, so that no recovery is needed.
      stopSignal: 'SIGINT',
      graceMs: 30_000,
      readyTimeoutMs: 120_000,
      attempts: 3,
      prepare,
      whenReady: async (_child, signal) => {
        const url = localDatabaseUrl(port.current(), DATABASE_OWNER, password, 'postgres');
        await retryUntilReady(signal, () => checkConnection(url, 2_000), { isRefusal });
        port.settle();
        return port.current();
      },
    },
  };
};

export interface DatabaseEngine extends StackEngine {
  /** Returns the URL of the owner of all tables. */
  ownerUrl(): string;
  /** Returns the URL of a service's role. */
  serviceUrl(service: ServiceName): string;
  /** Address for the role that takes archived events out of the log. */
  archiverUrl(): string;
  /** True when no other stack can use it. */
  readonly isOurs: boolean;
}

type DatabaseOptions = EngineOptions & { readonly root: string };

const MIGRATING = 'database: applying migrations';

const writeUrl = ({ context }: EngineOptions, url: string): void =>
  writeFileAtomic(context.paths.databaseUrlFile, `${url}\n`);

const manageDatabase = (options: DatabaseOptions, program: ResolvedEngine): DatabaseEngine => {
  const { context, hooks, progress, root } = options;
  const { archiver, databaseOwner, services } = context.credentials;
  const { spec, version, socketFolder } = postgresProcess(context, program);
  const process = new SupervisedProcess(spec, hooks);
  const urlFor = (user: string, password: string, database?: string): string =>
    localDatabaseUrl(process.status().port ?? 0, user, password, database);
  const ownerUrl = (): string => urlFor(DATABASE_OWNER, databaseOwner);
  // Services take the socket: a statement over it costs less. All else takes the port.
  const roleUrl = (role: string, password: string): string =>
    overSocket(urlFor(role, password), socketFolder());
  return {
    process,
    isOurs: true,
    ownerUrl,
    serviceUrl: (service) => roleUrl(`antiphon_${service}`, services[service].database),
    archiverUrl: () => roleUrl('antiphon_archiver', archiver),
    entry: () => managedEntry(process, version, ''),
    start: async () => {
      await progress.step('PostgreSQL: starting it', () => process.start());
      writeUrl(options, ownerUrl());
      await progress.step(MIGRATING, async () => {
        await ensureDatabase(urlFor(DATABASE_OWNER, databaseOwner, 'postgres'));
        if (context.duringRestore) return;
        await refuseEmptyDatabase(context.paths, ownerUrl(), context.paths.postgres);
        await migrateDatabase(ownerUrl(), root);
        const passwordOf = (role: LoginRole) => (role === 'archiver' ? archiver : services[role].database);
        await setPasswords(ownerUrl(), passwordOf);
      });
    },
  };
};

const useExternalDatabase = (options: DatabaseOptions, url: string): DatabaseEngine => {
  const address = (): string => addressOfUrl(url, PROTOCOL_PORT);
  return {
    process: null,
    isOurs: false,
    ownerUrl: () => url,
    serviceUrl: (service) => withRole(url, `antiphon_${service}`),
    archiverUrl: () => withRole(url, 'antiphon_archiver'),
    entry: () => externalEntry(address()),
    start: async () => {
      await checkExternal('ANTIPHON_DATABASE_URL', address, () => checkConnection(url, 5_000));
      await refuseEmptyDatabase(options.context.paths, url, address());
      writeUrl(options, url);
      await options.progress.step(MIGRATING, () => migrateDatabase(url, options.root));
    },
  };
};

/** Creates PostgreSQL, migrated, with one role for each service. */
export const createDatabase = (options: DatabaseOptions, source: EngineSource): DatabaseEngine =>
  source.program === undefined
    ? useExternalDatabase(options, source.external)
    : manageDatabase(options, source.program);
