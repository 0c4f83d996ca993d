import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { createTestDatabase, startNatsServer, until } from '@antiphon/testing';
import type { TestDatabase, TestNatsServer } from '@antiphon/testing';
import type { Environment } from './service-env.js';
import { serviceEnv } from './testing/service-env.js';

const PROGRAM = fileURLToPath(new URL('testing/child-service.mjs', import.meta.url));

interface Child {
  readonly process: ChildProcess;
  readonly output: () => string;
  readonly ended: Promise<number | null>;
}

const spawn = (env: Environment): Child => {
  let output = '';
  const child = fork(PROGRAM, { env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'], execArgv: [] });
  const read = async (stream: Readable | null): Promise<void> => {
    for await (const chunk of stream ?? []) output += String(chunk);
  };
  // The `close` event does not arrive after the parent has closed the channel.
  const ended = Promise.all([once(child, 'exit'), read(child.stdout), read(child.stderr)]).then(
    ([[code]]) => code as number | null,
  );
  return { process: child, output: () => output, ended };
};

jest.setTimeout(30_000);

describe('a service as a process', () => {
  let server: TestNatsServer;
  let database: TestDatabase;
  beforeAll(async () => {
    [server, database] = await Promise.all([startNatsServer(), createTestDatabase()]);
  });
  afterAll(async () => {
    await Promise.all([server.remove(), database.drop()]);
  });

  const start = async (env: Environment = {}): Promise<Child & { port: number }> => {
    const child = spawn({ ...serviceEnv('sandbox', database, server.url), ...env });
    const failed = child.ended.then((code) =>
      Promise.reject(new Error(`ended with ${code}: ${child.output()}`)),
    );
    const [message] = (await Promise.race([once(child.process, 'message'), failed])) as [
      { type: string; port: number },
    ];
    failed.catch(() => {});
    expect(message.type).toBe('ready');
    return { ...child, port: message.port };
  };

  it('leaves its compiled code to the next process, also when it is killed', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'antiphon-compiled-'));
    const { process: child, ended } = await start({ NODE_COMPILE_CACHE: folder });
    const files = () => readdirSync(folder, { recursive: true, withFileTypes: true });
    await until(() => files().filter((entry) => entry.isFile()).length > 100);
    child.kill('SIGKILL');
    await ended;
    await rm(folder, { recursive: true });
  });

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'reports ready, and drains and exits with 0 at %s',
    async (signal) => {
      const child = await start();
      expect((await fetch(`http://127.0.0.1:${child.port}/readyz`)).status).toBe(200);
      child.process.kill(signal);
      expect(await child.ended).toBe(0);
      expect(child.output()).toContain('"message":"stopping"');
    },
  );

  it('responds to a ping of its supervisor', async () => {
    const child = await start();
    child.process.send({ type: 'ping' });
    expect((await once(child.process, 'message'))[0]).toEqual({ type: 'pong' });
    child.process.kill('SIGTERM');
    await child.ended;
  });

  it('continues after SIGHUP, and logs it', async () => {
    const child = await start();
    child.process.kill('SIGHUP');
    await until(() => child.output().includes('"message":"signal ignored"'));
    expect((await fetch(`http://127.0.0.1:${child.port}/readyz`)).status).toBe(200);
    child.process.kill('SIGTERM');
    expect(await child.ended).toBe(0);
  });

  it('exits when its supervisor is gone', async () => {
    const child = await start();
    child.process.disconnect();
    expect(await child.ended).toBe(0);
  });

  it.each(['throw', 'reject'])('exits after an uncaught %s and logs it', async (how) => {
    const child = await start();
    child.process.send(how);
    expect(await child.ended).toBe(1);
    expect(child.output()).toMatch(/"level":"fatal".*(uncaught exception|unhandled rejection)/);
  });

  it('exits with 1 and one log line when it cannot start', async () => {
    const { ANTIPHON_SERVICE_DATABASE_URL: _, ...env } = serviceEnv('sandbox', database, server.url);
    const child = spawn(env);
    expect(await child.ended).toBe(1);
    expect(child.output()).toContain('ANTIPHON_SERVICE_DATABASE_URL');
  });

  it('logs each problem of the configuration with its place', async () => {
    const child = spawn({
      ...serviceEnv('sandbox', database, server.url),
      ANTIPHON_CONFIG: '/nowhere/antiphon.toml',
    });
    expect(await child.ended).toBe(1);
    expect(child.output()).toContain('/nowhere/antiphon.toml');
  });
});
