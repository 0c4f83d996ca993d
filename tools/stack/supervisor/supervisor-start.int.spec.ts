import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { homeLayout } from '@antiphon/bootstrap/project';
import { identify, isAlive } from '@antiphon/bootstrap/processes';
import { until } from '@antiphon/testing';
import { down, readStack, up } from '../index.js';
import type { RunningStack } from '../index.js';
import { readChildren } from '../process/child-process.js';
import { environment, start, useHomes, query } from './supervisor-world.spec.js';

/** Connects as the gateway does. The address is null for a connection over the Unix socket. */
const addressOfService = async ({ stack }: RunningStack): Promise<Record<string, unknown>[]> => {
  const env = (await (await fetch(`${stack.urls.gateway}/env`)).json()) as Record<string, string>;
  return query(env['ANTIPHON_SERVICE_DATABASE_URL']!, 'select inet_client_addr() as address');
};

describe('a start', () => {
  const newHome = useHomes();

  // @shows U62
  it('joins a concurrent start of the same home', async () => {
    const home = newHome();
    const both = await Promise.all([start(home), start(home)]);
    expect(both.map(({ joined }) => joined).sort()).toEqual([false, true]);
    expect(both[0]!.stack.supervisor).toEqual(both[1]!.stack.supervisor);
    expect(await down({ home })).toEqual({ wasRunning: true });
  }, 60_000);

  it('is ready when its gateway says so, also one that joins a running stack', async () => {
    const home = newHome();
    const flag = join(home, 'not-ready');
    const log = join(home, 'fake-services.log');
    const asked = (): number => readFileSync(log, 'utf8').split('asked').length - 1;
    const isAsked = (): boolean => existsSync(log) && asked() > 2;
    writeFileSync(flag, '');
    let isReady = false;
    const first = start(home).finally(() => (isReady = true));
    await until(isAsked, 30_000);
    expect([isReady, readStack(home)?.state]).toEqual([false, 'starting']);
    rmSync(flag);
    expect((await first).stack.state).toBe('ready');
    // Its file still says `ready`, and its gateway does not.
    writeFileSync(log, '');
    writeFileSync(flag, '');
    isReady = false;
    const second = start(home).finally(() => (isReady = true));
    await until(isAsked);
    expect([isReady, readStack(home)?.state]).toEqual([false, 'ready']);
    rmSync(flag);
    expect((await second).joined).toBe(true);
    await down({ home });
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
    expect(await addressOfService(second)).toEqual([{ address: null }]);
    const again = readFileSync(second.stack.credentials.databaseUrlFile, 'utf8').trim();
    expect(await query(again, 'select answer from kept')).toEqual([{ answer: 42 }]);
    process.kill(second.stack.supervisor.pid, 'SIGKILL');
    await second.ended;
    const left = readChildren(homeLayout(home)).filter(isAlive);
    expect(left.length).toBeGreaterThanOrEqual(3);
    expect(await down({ home })).toEqual({ wasRunning: true });
    expect(left.filter(isAlive)).toEqual([]);
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

  it('reports a home that is a file', async () => {
    const folder = newHome();
    const home = join(folder, 'file');
    writeFileSync(home, '');
    chmodSync(home, 0o600);
    await expect(up({ home, env: environment() })).rejects.toThrow(/the home .*file cannot be used/);
  });
});
