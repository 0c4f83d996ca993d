import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connect } from '@nats-io/transport-node';
import pg from 'pg';
import { SERVICES } from '@antiphon/contracts/messaging';
import { homeLayout } from '@antiphon/bootstrap/project';
import { identify, isAlive, waitForExit } from '@antiphon/bootstrap/processes';
import type { ProcessIdentity } from '@antiphon/bootstrap/types';
import { projectRoot } from '@antiphon/bootstrap/project';
import { SUPERVISED_HOME } from '@antiphon/bootstrap/stop-stack';
import { backupDatabase, createPool, restoreDatabase, undoRestore } from '@antiphon/database';
import { silentLogger } from '@antiphon/observability';
import { until } from '@antiphon/testing';
import { down, readStack, up, withStoppedHome } from '../index.js';
import type { RunningStack, StackJson, UpOptions } from '../index.js';
import { readChildren } from '../process/child-process.js';

const FAKE = join(projectRoot, 'tools/stack/fixtures/fake-service.mjs');
const FAKES = Object.fromEntries(SERVICES.map((name) => [name, FAKE]));

const environment = (more: Record<string, string> = {}): NodeJS.ProcessEnv => ({
  PATH: process.env['PATH'],
  HOME: process.env['HOME'],
  ...(process.env['ANTIPHON_CACHE'] ? { ANTIPHON_CACHE: process.env['ANTIPHON_CACHE'] } : {}),
  ...more,
});

/** Real engines of its own, with small programs in place of the services. */
const start = (home: string, options: UpOptions = {}): Promise<RunningStack> =>
  up({ home, cwd: home, env: environment(), usualPorts: false, mainFiles: FAKES, ...options });

const allPids = (stack: StackJson): number[] => [
  stack.supervisor.pid,
  ...Object.values(stack.services).flatMap((entries) => entries.map(({ pid }) => pid ?? 0)),
  ...Object.values(stack.engines).map(({ pid }) => pid ?? 0),
];
const identities = (stack: StackJson): ProcessIdentity[] =>
  allPids(stack).flatMap((pid) => (pid === 0 ? [] : (identify(pid) ?? [])));

/** Every process that bears the mark of a home, written down or not. */
const marked = (home: string): string[] =>
  readdirSync('/proc').filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`${SUPERVISED_HOME}=${home}\0`);
    } catch {
      return false; // no process, or one that has just ended
    }
  });

const makeHome = (): string => mkdtempSync(join(tmpdir(), 'antiphon supervisor '));

const query = async (url: string, sql: string): Promise<Record<string, unknown>[]> => {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
};

describe('a running stack', () => {
  // The space is part of the test: no path of ours is ever read by a shell.
  const home = makeHome();
  let running: RunningStack;
  const progress: string[] = [];
  beforeAll(async () => {
    running = await start(home, { scale: { gateway: 2 }, onProgress: (line) => void progress.push(line) });
  }, 60_000);
  afterAll(async () => {
    await down({ home });
    rmSync(home, { recursive: true, force: true });
  }, 60_000);

  const now = (): StackJson => readStack(home)!;
  const databaseUrl = (): string => readFileSync(now().credentials.databaseUrlFile, 'utf8').trim();
  const nats = () =>
    JSON.parse(readFileSync(now().credentials.natsUsersFile, 'utf8')) as {
      url: string;
      users: Record<string, { user: string; password: string }>;
    };

  it('describes its processes in stack.json and stores secrets in files of mode 600', async () => {
    const stack = now();
    expect(stack).toEqual(running.stack);
    expect(stack.state).toBe('ready');
    expect(stack.urls.gateways).toHaveLength(2);
    expect(stack.urls.gateway).toBe(stack.urls.gateways[0]);
    expect(stack.urls).not.toHaveProperty('dashboard');
    expect(await (await fetch(stack.urls.gateway!)).text()).toBe('ok');
    expect(allPids(stack).map((pid) => identify(pid) !== null)).not.toContain(false);
    const { databaseUrlFile, natsUsersFile } = stack.credentials;
    const secretFiles = [stack.adminKeyFile, databaseUrlFile, natsUsersFile, homeLayout(home).secretsFile];
    expect(secretFiles.map((path) => statSync(path).mode & 0o777)).toEqual([0o600, 0o600, 0o600, 0o600]);
    expect(statSync(homeLayout(home).credentials).mode & 0o777).toBe(0o700);
    expect(readFileSync(homeLayout(home).stackFile, 'utf8')).not.toContain(nats().users['agent']!.password);
  });

  it('runs PostgreSQL with durable commits, checksums and a login for each service', async () => {
    const [settings] = await query(
      databaseUrl(),
      `select current_setting('fsync') as fsync, current_setting('data_checksums') as checksums,
        current_setting('synchronous_commit') as commit, current_setting('listen_addresses') as host`,
    );
    expect(settings).toEqual({ fsync: 'on', checksums: 'on', commit: 'on', host: '127.0.0.1' });
    const env = (await (await fetch(now().urls.gateway + '/env')).json()) as Record<string, string>;
    const own = env['ANTIPHON_SERVICE_DATABASE_URL']!;
    expect(await query(own, 'select current_user as me')).toEqual([{ me: 'antiphon_gateway' }]);
    await expect(query(own.replace(/:[^:@]+@/, ':wrong@'), 'select 1')).rejects.toThrow(/password/);
  });

  it('limits a service to its own subjects at NATS and refuses clients without a password', async () => {
    const { url, users } = nats();
    await expect(connect({ servers: url, reconnect: false })).rejects.toThrow(/authorization/i);
    const agent = { user: users['agent']!.user, pass: users['agent']!.password };
    const connection = await connect({ servers: url, inboxPrefix: '_INBOX.agent', ...agent });
    const refused = new Promise<Error | null>((resolve) =>
      connection.subscribe('cmd.metering.>', { callback: (error) => resolve(error) }),
    );
    expect((await refused)?.message).toMatch(/permissions violation/i);
    const heard = new Promise<string>((resolve) =>
      connection.subscribe('cmd.agent.turn.x', { callback: (_error, message) => resolve(message.string()) }),
    );
    await connection.flush();
    const gateway = { user: users['gateway']!.user, pass: users['gateway']!.password };
    const other = await connect({ servers: url, ...gateway });
    other.publish('cmd.agent.turn.x', 'hello');
    expect(await heard).toBe('hello');
    await Promise.all([connection.close(), other.close()]);
  });

  it('restarts a killed service at once and releases its leases', async () => {
    const [before] = now().services.agent;
    const env = (await (await fetch(`http://127.0.0.1:${before!.port}/env`)).json()) as Record<
      string,
      string
    >;
    const owner = env['ANTIPHON_SERVICE_ID']!;
    await query(
      databaseUrl(),
      `insert into leases (workspace, name, owner, epoch, expires_at)
       values ('default', 'session/x', '${owner}', 7, clock_timestamp() + interval '1 hour')`,
    );
    process.kill(before!.pid!, 'SIGKILL');
    await until(() => {
      const [agent] = now().services.agent;
      return agent!.state === 'ready' && agent!.pid !== before!.pid;
    });
    expect(now().services.agent[0]).toMatchObject({ id: 'agent-1', restarts: 1 });
    expect(await query(databaseUrl(), `select owner from leases where name = 'session/x'`)).toEqual([
      { owner: null },
    ]);
    expect(progress).toContain('  agent-1 was ended by SIGKILL; restarting');
  });

  it.each(['postgres', 'nats', 'temporal'] as const)('restarts a killed %s on its port', async (engine) => {
    const before = now().engines[engine];
    process.kill(before.pid!, 'SIGKILL');
    await until(() => {
      const { state, pid } = now().engines[engine];
      return state === 'ready' && pid !== before.pid;
    });
    expect(now().engines[engine]).toMatchObject({ port: before.port, restarts: 1 });
    expect(await query(databaseUrl(), 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  it('restarts a suspended service, which answers no health check', async () => {
    const [before] = now().services.metering;
    process.kill(before!.pid!, 'SIGSTOP');
    await until(() => now().services.metering[0]!.pid !== before!.pid, 40_000);
    await until(() => now().services.metering[0]!.state === 'ready');
    expect(progress.at(-1)).toBe('  metering-1 did not respond to 3 health checks and was ended; restarting');
  }, 60_000);

  it('continues after SIGHUP', async () => {
    const { supervisor } = now();
    process.kill(supervisor.pid, 'SIGHUP');
    await until(() => readFileSync(join(now().logs, 'supervisor.log'), 'utf8').includes('signal ignored'));
    expect(now().state).toBe('ready');
  });

  it('restarts a crashed service with the last good configuration while the file is broken', async () => {
    const gateway = () => now().services.gateway[0]!;
    const restart = async (): Promise<Record<string, string>> => {
      const { pid, restarts } = gateway();
      process.kill(pid!, 'SIGKILL');
      await until(() => gateway().restarts === restarts + 1 && gateway().state === 'ready');
      return (await (await fetch(`http://127.0.0.1:${gateway().port}/env`)).json()) as Record<string, string>;
    };
    const file = join(home, 'antiphon.toml');
    writeFileSync(file, '[gatway]\nport = 1\n');
    const broken = await restart();
    expect(broken).toMatchObject({
      ANTIPHON_CONFIG: homeLayout(home).lastConfigFile,
      ANTIPHON_CONFIG_FOLDER: home,
      ANTIPHON_CONFIG_PROBLEM: expect.stringContaining('antiphon.toml:1'),
    });
    expect(progress.at(-1)).toMatch(/antiphon\.toml:1.*services continue with the last good one/);
    rmSync(file);
    expect(await restart()).not.toHaveProperty('ANTIPHON_CONFIG_PROBLEM');
  });

  it('is joined by a second start, which starts no process', async () => {
    const pids = allPids(now());
    const second = await start(home);
    expect(second.joined).toBe(true);
    expect(allPids(second.stack)).toEqual(pids);
  });

  it('stops gateways first and engines last, without a process or stack.json left', async () => {
    const everything = identities(now());
    expect(everything).toHaveLength(10);
    running.requestStop();
    expect(await running.ended).toBeNull();
    expect(everything.filter(isAlive)).toEqual([]);
    const stops = readFileSync(join(home, 'fake-services.log'), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('stop '))
      .map((line) => line.split(/[ -]/)[1]);
    expect(stops.slice(0, 3)).toEqual(['gateway', 'gateway', 'agent']);
    expect(stops.slice(3).sort()).toEqual(['memory', 'metering', 'sandbox']);
    expect(existsSync(homeLayout(home).stackFile)).toBe(false);
    expect(await down({ home })).toEqual({ wasRunning: false });
  });
});

describe('a start', () => {
  const homes: string[] = [];
  const newHome = (): string => {
    const home = makeHome();
    homes.push(home);
    return home;
  };
  afterAll(async () => {
    for (const home of homes) {
      await down({ home });
      rmSync(home, { recursive: true, force: true });
    }
  }, 60_000);

  it('joins a concurrent start of the same home', async () => {
    const home = newHome();
    const both = await Promise.all([start(home), start(home)]);
    expect(both.map(({ joined }) => joined).sort()).toEqual([false, true]);
    expect(both[0]!.stack.supervisor).toEqual(both[1]!.stack.supervisor);
    expect(await down({ home })).toEqual({ wasRunning: true });
  }, 60_000);

  it('ends the orphans of a killed supervisor and continues with the same data', async () => {
    const home = newHome();
    const first = await start(home);
    const url = readFileSync(first.stack.credentials.databaseUrlFile, 'utf8').trim();
    await query(url, 'create table kept as select 42 as answer');
    const engines = Object.values(first.stack.engines).map(({ pid }) => identify(pid!)!);
    process.kill(first.stack.supervisor.pid, 'SIGKILL');
    expect(await first.ended).toBe('SIGKILL');
    expect(engines.map(isAlive)).toEqual([true, true, true]);
    const second = await start(home);
    expect(engines.map(isAlive)).toEqual([false, false, false]);
    const again = readFileSync(second.stack.credentials.databaseUrlFile, 'utf8').trim();
    expect(await query(again, 'select answer from kept')).toEqual([{ answer: 42 }]);
    process.kill(second.stack.supervisor.pid, 'SIGKILL');
    await second.ended;
    const left = readChildren(homeLayout(home)).filter(isAlive);
    expect(left.length).toBeGreaterThanOrEqual(3);
    expect(await down({ home })).toEqual({ wasRunning: true });
    expect(left.filter(isAlive)).toEqual([]);
  }, 60_000);

  it('succeeds after a start that was killed before it was ready', async () => {
    const home = newHome();
    const seen = new AbortController();
    const killed = start(home, { signal: seen.signal }).catch((error: unknown) => error);
    // As soon as there is a first process: PostgreSQL's files are half made then.
    await until(() => existsSync(homeLayout(home).lockFile));
    await until(() => readChildren(homeLayout(home)).length > 0);
    const { pid } = JSON.parse(readFileSync(homeLayout(home).lockFile, 'utf8')) as { pid: number };
    process.kill(pid, 'SIGKILL');
    expect(await killed).toMatchObject({ message: expect.stringContaining('the start was ended (SIGKILL)') });
    expect((await start(home)).stack.state).toBe('ready');
    await down({ home });
    expect(marked(home)).toEqual([]);
  }, 60_000);

  it('reports the last output of a process that fails, and ends all processes', async () => {
    const home = newHome();
    writeFileSync(join(home, 'crash-on-start'), '');
    await expect(start(home)).rejects.toThrow(
      /did not start: it ended with exit code 7\.\n[\s\S]*this one was told to crash/,
    );
    await until(() => !existsSync(homeLayout(home).lockFile));
    expect(readChildren(homeLayout(home))).toEqual([]);
  }, 60_000);

  it('reports the place of a configuration error before it starts a process', async () => {
    const home = newHome();
    writeFileSync(join(home, 'antiphon.toml'), '[gatway]\nport = 1\n');
    const failure = (await start(home).catch((error: unknown) => error)) as Error;
    expect(failure).toMatchObject({ exitCode: 2 });
    expect(failure.message).toMatch(/antiphon\.toml.*1[\s\S]*gatway/);
    expect(existsSync(join(homeLayout(home).postgres, 'data'))).toBe(false);
  });

  it('chooses and reports another port where the usual one is taken', async () => {
    const home = newHome();
    const server = createServer().listen(0, '127.0.0.1');
    await until(() => server.listening);
    const { port } = server.address() as AddressInfo;
    writeFileSync(join(home, 'antiphon.toml'), `[gateway]\nport = ${port}\n`);
    const progress: string[] = [];
    const running = await start(home, { usualPorts: true, onProgress: (line) => void progress.push(line) });
    const actual = running.stack.services.gateway[0]!.port;
    expect(actual).not.toBe(port);
    expect(progress).toContain(`  port ${port} is taken; gateway-1 uses ${actual} instead`);
    await down({ home });
    server.close();
  }, 60_000);

  it('uses external engines and starts none of its own', async () => {
    const host = newHome();
    const theirs = await start(host);
    const { postgres, temporal } = theirs.stack.engines;
    const { url, users } = JSON.parse(readFileSync(theirs.stack.credentials.natsUsersFile, 'utf8')) as {
      url: string;
      users: Record<string, { password: string }>;
    };
    const owner = readFileSync(theirs.stack.credentials.databaseUrlFile, 'utf8').trim();
    await query(owner, 'create database other');
    const home = newHome();
    const running = await start(home, {
      env: environment({
        ANTIPHON_DATABASE_URL: owner.replace(/antiphon$/, 'other'),
        ANTIPHON_NATS_URL: url.replace('//', `//operator:${users['operator']!.password}@`),
        ANTIPHON_TEMPORAL_ADDRESS: temporal.address,
      }),
    });
    expect(running.stack.engines).toMatchObject({
      postgres: { external: true, pid: null, address: postgres.address },
      nats: { external: true, pid: null, address: url },
      temporal: { external: true, pid: null, address: temporal.address },
    });
    const env = (await (await fetch(running.stack.urls.gateway + '/env')).json()) as Record<string, string>;
    expect(env['ANTIPHON_SERVICE_NATS_URL']).toBe(url);
    expect(env['ANTIPHON_SERVICE_NATS_USER']).toBe('operator');
    expect(
      await query(env['ANTIPHON_SERVICE_DATABASE_URL']!, `select current_setting('role') as role`),
    ).toEqual([{ role: 'antiphon_gateway' }]);
    await down({ home });
    await down({ home: host });
  }, 60_000);

  it('names the variable of an external engine that does not respond', async () => {
    const home = newHome();
    const server = createServer().listen(0, '127.0.0.1');
    await until(() => server.listening);
    const { port } = server.address() as AddressInfo;
    server.close();
    await expect(
      start(home, { env: environment({ ANTIPHON_NATS_URL: `nats://127.0.0.1:${port}` }) }),
    ).rejects.toThrow(`ANTIPHON_NATS_URL points at 127.0.0.1:${port}, which cannot be used`);
  }, 60_000);

  it('ends with the process that started it, unless it was detached', async () => {
    const home = newHome();
    const running = await start(home);
    const everything = identities(running.stack);
    running.detach();
    expect(everything.filter(isAlive)).toHaveLength(everything.length);
    await down({ home });
    expect(everything.filter(isAlive)).toEqual([]);
    expect(await waitForExit(everything[0]!, 1_000)).toBe(true);
  }, 60_000);

  it('refuses a database whose restore is unfinished, and continues after an undo', async () => {
    const home = newHome();
    await start(home);
    await down({ home });
    const stopped = { home, env: environment(), logger: silentLogger, onProgress: () => undefined };
    const folder = join(home, 'a backup');
    await withStoppedHome(stopped, async ({ databaseUrl: url }) => {
      const pool = createPool({ url, applicationName: 'spec' });
      await backupDatabase(pool, folder, () => Promise.resolve({})).finally(() => pool.end());
      const restoring = restoreDatabase({
        ...{ url, folder, migrationsDir: join(projectRoot, 'prisma/migrations') },
        finish: () => Promise.resolve(null),
        deleteDerived: () => Promise.reject(new Error('spec')),
      });
      await expect(restoring).rejects.toMatchObject({ code: 'BACKUP.NOT_FINISHED' });
    });
    await expect(start(home)).rejects.toThrow(/restore --resume.*RESTORE_UNFINISHED/s);
    await withStoppedHome({ ...stopped, duringRestore: true }, ({ databaseUrl }) => undoRestore(databaseUrl));
    expect((await start(home)).stack.state).toBe('ready');
    await down({ home });
  }, 120_000);

  it('stops by itself when its home is deleted', async () => {
    const home = newHome();
    const running = await start(home);
    const everything = identities(running.stack);
    rmSync(home, { recursive: true, force: true });
    expect(await running.ended).toBeNull();
    expect(everything.filter(isAlive)).toEqual([]);
  }, 60_000);

  it('reports a home that is a file', async () => {
    const folder = newHome();
    const home = join(folder, 'file');
    writeFileSync(home, '');
    chmodSync(home, 0o600);
    await expect(up({ home, env: environment() })).rejects.toThrow(/the home .*file cannot be used/);
  });
});
