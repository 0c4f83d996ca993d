import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { identify, terminate } from '@antiphon/bootstrap/processes';
import type { HomeLayout } from '@antiphon/bootstrap/project';
import type { ResolvedEngine } from '@antiphon/bootstrap/types';
import { createStickyPort } from '../home/sticky-port.js';
import type { Incarnation } from '../process/supervised-process.js';
import { retryUntil } from './engine.js';
import type { EngineContext, ManagedEngine } from './engine.js';
import { DATABASE_OWNER, ensureData } from './postgres-data.js';
import { databaseUser, runnableCopy } from './unprivileged-user.js';

const USUAL_PORT = 15432;

/** Beside these, PostgreSQL's defaults: every commit is flushed before it is acknowledged. */
const settings = (port: number): Record<string, string> => ({
  port: String(port),
  listen_addresses: '127.0.0.1',
  // A socket's path is limited to 107 bytes, and a home may be anywhere.
  unix_socket_directories: '',
  max_connections: '300',
  shared_buffers: '128MB',
  password_encryption: 'scram-sha-256',
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  // Short statements by the thousand: compiling one costs more than it saves.
  jit: 'off',
  log_timezone: 'UTC',
  timezone: 'UTC',
});

const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return ''; // it has just ended, or there is no /proc
  }
};

/**
 * A kill -9 leaves `postmaster.pid`. PostgreSQL sees for itself that its process is gone, unless the pid belongs to
 * another one by now: then it refuses to start. And a postmaster that still runs there is one that nobody supervises.
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

/** URL of a database on our PostgreSQL. */
export const localDatabaseUrl = (
  port: number,
  user: string,
  password: string,
  database = 'antiphon',
): string => `postgresql://${user}:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`;

const connectOnce = async (connectionString: string): Promise<null> => {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 2_000 });
  // A connection that breaks while we ask must not end the supervisor.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('select 1');
    return null;
  } finally {
    await client.end();
  }
};

const launchOf = (bin: string, dataDir: string, port: number, { home, logs }: HomeLayout): Incarnation => {
  const user = databaseUser();
  const args = Object.entries(settings(port)).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  return {
    launch: {
      command: join(bin, 'postgres'),
      args: ['-D', dataDir, ...args],
      env: { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' },
      cwd: '/',
      home,
      logFile: join(logs, 'postgresql.log'),
      ...(user ?? {}),
    },
  };
};

/** PostgreSQL on loopback, with checksums and passwords; as root, it runs as another user. */
export const postgresEngine = (context: EngineContext, program: ResolvedEngine): ManagedEngine => {
  const { paths, credentials, ports, usualPorts, adopt } = context;
  const password = credentials.databaseOwner;
  const port = createStickyPort({ ports, name: 'PostgreSQL', preferred: usualPorts ? USUAL_PORT : 0 });
  const prepare = async (): Promise<Incarnation> => {
    const user = databaseUser();
    const bin = await runnableCopy(program.folder, program.version, user);
    const options = {
      paths,
      homeId: credentials.homeId,
      password,
      bin,
      version: program.version,
      user,
      adopt,
    };
    const dataDir = await ensureData(options);
    await clearStalePid(dataDir);
    return launchOf(bin, dataDir, await port.ensure(), paths);
  };
  return {
    version: program.version,
    address: () => `127.0.0.1:${port.current()}`,
    spec: {
      name: 'PostgreSQL',
      rank: 0,
      // Fast shutdown: ends sessions, writes a checkpoint, leaves nothing to recover.
      stopSignal: 'SIGINT',
      graceMs: 30_000,
      readyTimeoutMs: 120_000,
      attempts: 3,
      prepare,
      whenReady: async (_child, signal) => {
        const url = localDatabaseUrl(port.current(), DATABASE_OWNER, password, 'postgres');
        await retryUntil(signal, () => connectOnce(url));
        port.settle();
        return port.current();
      },
    },
  };
};
