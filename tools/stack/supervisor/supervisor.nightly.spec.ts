import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connect } from '@nats-io/transport-node';
import { homeLayout } from '@antiphon/bootstrap/project';
import { identify, isAlive } from '@antiphon/bootstrap/processes';
import { until } from '@antiphon/testing';
import { down, readStack } from '../index.js';
import type { RunningStack, StackJson } from '../index.js';
import { start, allPids, identities, makeHome, query } from './supervisor-world.spec.js';

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
    expect(stack.urls.dashboard).toBe(`${stack.urls.gateway}/`);
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
        current_setting('synchronous_commit') as commit, current_setting('listen_addresses') as host,
        current_setting('wal_compression') as compression`,
    );
    const durable = { fsync: 'on', checksums: 'on', commit: 'on' };
    expect(settings).toEqual({ ...durable, host: '127.0.0.1', compression: 'pglz' });
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
    // Temporal may end by itself, and be restarted, when PostgreSQL is killed.
    await until(() => now().engines[engine].state === 'ready');
    const before = now().engines[engine];
    process.kill(before.pid!, 'SIGKILL');
    await until(() => {
      const { state, pid } = now().engines[engine];
      return state === 'ready' && pid !== before.pid;
    });
    expect(now().engines[engine]).toMatchObject({
      ...{ port: before.port, restarts: before.restarts + 1 },
    });
    expect(await query(databaseUrl(), 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  // @shows review1-15
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

  // @shows U62
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
