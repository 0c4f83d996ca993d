import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile, fork, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { projectRoot } from '@antiphon/bootstrap/project';
import { SERVICES } from '@antiphon/contracts/messaging';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { containerNatsConfig } from '@antiphon/stack';
import { createTestDatabase, startNatsServer } from '@antiphon/testing';
import { connectClient } from '@antiphon/testing/client';
import type { TestDatabase, TestNatsServer } from '@antiphon/testing';
import { IMAGE_NAMES } from './stage/contents.mjs';
import { BUDGET_BYTES, gzipSize } from './stage/measure.mjs';
import { stageImage } from './stage/stage-image.mjs';

const run = promisify(execFile);
const arch = process.arch === 'arm64' ? 'arm64' : 'x64';
const TOKEN = randomBytes(16).toString('hex');
const secret = (): string => randomBytes(16).toString('hex');

/** Passwords as tools/deploy/make-secrets.mjs would make them. */
const database = Object.fromEntries(SERVICES.map((name) => [name, secret()])) as Record<ServiceName, string>;
const nats = Object.fromEntries(['operator', ...SERVICES].map((name) => [name, secret()]));
const natsVariable = (user: string): string => `ANTIPHON_${user.toUpperCase()}_NATS_PASSWORD`;

/** Gives up what a restricted pod has not: capabilities, namespaces of its own, new privileges. */
const POD = [
  ...['unshare', '--user', '--map-root-user', '/bin/sh', '-c'],
  'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --no-new-privs --bounding-set=-all --inh-caps=-all "$@"',
  'pod',
];

interface Running {
  readonly process: ChildProcess;
  readonly port: number;
  readonly output: () => string;
}

describe('what the images hold', () => {
  // Outside of the project, so that nothing is found in its node_modules.
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-images-'));
  const home = mkdtempSync(join(tmpdir(), 'antiphon-images-home-'));
  const name = `antiphon_images_${randomBytes(4).toString('hex')}`;
  const started: Running[] = [];
  let neighbour: TestDatabase;
  let admin: pg.Client;
  let natsServer: TestNatsServer;

  const urlFor = (user?: string, password?: string): string => {
    const url = new URL(neighbour.url);
    url.pathname = `/${name}`;
    if (user !== undefined) url.username = user;
    if (password !== undefined) url.password = password;
    return url.href;
  };

  const environment = (service: ServiceName): Record<string, string> => ({
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    NODE_ENV: 'production',
    ANTIPHON_HOME: home,
    ANTIPHON_SERVICE_HTTP_HOST: '0.0.0.0',
    ANTIPHON_SERVICE_HTTP_PORT: '0',
    ANTIPHON_SERVICE_DATABASE_URL: urlFor(`antiphon_${service}`, database[service]),
    ANTIPHON_SERVICE_NATS_URL: natsServer.url,
    ANTIPHON_SERVICE_NATS_USER: service,
    ANTIPHON_SERVICE_NATS_PASSWORD: nats[service] ?? '',
    ...(service === 'agent' && {
      ANTIPHON_TEMPORAL_ADDRESS: process.env['ANTIPHON_TEST_TEMPORAL_ADDRESS'] ?? '',
    }),
    ...(service === 'gateway' && { ANTIPHON_GATEWAY_TOKEN: TOKEN }),
  });

  const start = async (service: ServiceName, wrapper: readonly string[] = []): Promise<Running> => {
    const options = { cwd: join(folder, service), env: environment(service) };
    const stdio: ('ignore' | 'pipe' | 'ipc')[] = ['ignore', 'pipe', 'pipe', 'ipc'];
    const [command, ...rest] = wrapper;
    const child =
      command === undefined
        ? fork('start.mjs', [], { ...options, stdio, execArgv: [] })
        : spawn(command, [...rest, process.execPath, 'start.mjs'], { ...options, stdio });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const ended = once(child, 'exit').then(([code]) =>
      Promise.reject(new Error(`${service} ended with ${code}: ${output}`)),
    );
    const [message] = (await Promise.race([once(child, 'message'), ended])) as [{ port: number }];
    ended.catch(() => undefined);
    const running = { process: child, port: message.port, output: () => output };
    started.push(running);
    return running;
  };

  beforeAll(async () => {
    for (const image of IMAGE_NAMES)
      stageImage({ root: projectRoot, name: image, target: join(folder, image), arch });
    const env = Object.fromEntries(
      Object.entries(nats).map(([user, password]) => [natsVariable(user), `"${password}"`]),
    );
    const config = containerNatsConfig();
    const authorization = config.slice(config.indexOf('"authorization"'), config.lastIndexOf('}'));
    [neighbour, natsServer] = await Promise.all([
      createTestDatabase(),
      startNatsServer({ config: `max_payload: 8388608\n${authorization}`, env }),
    ]);
    admin = new pg.Client({ connectionString: neighbour.url });
    await admin.connect();
    await admin.query(`create database ${name}`);
  }, 240_000);

  afterAll(async () => {
    await Promise.all(
      started.map(async ({ process: child }) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const ended = once(child, 'exit');
        child.kill('SIGKILL');
        await ended;
      }),
    );
    await natsServer.remove();
    await admin.query(`drop database ${name} with (force)`);
    for (const service of SERVICES) await admin.query(`alter role antiphon_${service} nologin password null`);
    await admin.end();
    await neighbour.drop();
    for (const path of [folder, home]) rmSync(path, { recursive: true, force: true });
  }, 60_000);

  it('is production code only, and nothing of another platform', () => {
    for (const image of IMAGE_NAMES) {
      const files = globSync('**/*', { cwd: join(folder, image) });
      expect(
        files.filter((path) =>
          /\.(map|[cm]?ts|tsx)$|(^|\/)node_modules\/(typescript|jest|eslint)\//.test(path),
        ),
      ).toEqual([]);
      const natives = files.filter((path) => /\.(node|so|dylib|dll|exe)$/.test(path));
      expect(natives.filter((path) => /darwin|win32|windows|musl/.test(path))).toEqual([]);
      expect(existsSync(join(folder, image, 'node_modules/@antiphon/testing'))).toBe(false);
    }
  });

  it.each(IMAGE_NAMES)('stays under the budget, gzipped: %s', async (image) => {
    expect(await gzipSize(join(folder, image))).toBeLessThan(BUDGET_BYTES);
  });

  it('ends with the reason where the database is not migrated yet', async () => {
    await expect(start('memory')).rejects.toThrow(/memory ended with 1: [^]*the service could not start/);
  }, 60_000);

  it('migrates an empty database from its own folder', async () => {
    const passwords = Object.fromEntries(
      SERVICES.map((service) => [`ANTIPHON_${service.toUpperCase()}_DATABASE_PASSWORD`, database[service]]),
    );
    const { stdout } = await run(process.execPath, ['start.mjs'], {
      cwd: join(folder, 'migrate'),
      env: {
        PATH: process.env['PATH'],
        ANTIPHON_DATABASE_URL: urlFor(),
        ANTIPHON_TEMPORAL_ADDRESS: process.env['ANTIPHON_TEST_TEMPORAL_ADDRESS'],
        ...passwords,
      },
    });
    expect(stdout).toMatch(
      /database: applied .*\n.*each service has its own login.*\nTemporal: the namespace/,
    );
  }, 120_000);

  it('answers a turn with a tool, all five services from their own folders, the sandbox as in a restricted pod', async () => {
    const [, , sandbox] = await Promise.all([
      start('memory'),
      start('metering'),
      start('sandbox', POD),
      start('agent'),
    ]);
    const gateway = await start('gateway');
    // Without the layers that a pod cannot give, the rest holds, and the log says so.
    expect(sandbox?.output()).toMatch(/"layers":\["process","files","limits","dies-with-service"\]/);

    const client = await connectClient(`ws://127.0.0.1:${gateway.port}/ws`, {
      authorization: `Bearer ${TOKEN}`,
    });
    const frames = await client
      .stream('chat.send', {
        channel: 'spec',
        account: 'images',
        peer: 'reader',
        content: '/tool calculator {"expression":"19+23"}',
      })
      .done();
    await client.close();
    expect(frames.find(({ event }) => event === 'tool_result')?.data).toMatchObject({ is_error: false });
    expect(JSON.stringify(frames)).toContain('42');
    expect(frames.at(-1)).toMatchObject({ event: 'done', data: { status: 'completed' } });
  }, 120_000);

  it('audits that from the image of the command line, with the rights of a reader', async () => {
    const audit = run(process.execPath, ['start.mjs', 'audit'], {
      cwd: join(folder, 'cli'),
      env: {
        PATH: process.env['PATH'],
        HOME: home,
        ANTIPHON_DATABASE_URL: `${urlFor()}?options=-c%20role%3Dantiphon_reader`,
      },
    });
    // No key is mounted, so nothing is signed and the audit says so.
    const unsigned = { code: 5, stdout: expect.stringMatching(/UNSIGNED[^]*everything holds\n$/) };
    await expect(audit).rejects.toMatchObject(unsigned);
  }, 60_000);

  it('says by its health check whether it lives, and by /readyz whether all that it needs does', async () => {
    for (const { process: child, port } of started) {
      const env = { PATH: process.env['PATH'], ANTIPHON_SERVICE_HTTP_PORT: String(port) };
      const cwd = join(folder, 'agent');
      await run(process.execPath, ['healthcheck.mjs'], { cwd, env });
      await run(process.execPath, ['healthcheck.mjs', '/readyz'], { cwd, env });
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      expect(await ended).toEqual([0, null]);
      await expect(run(process.execPath, ['healthcheck.mjs'], { cwd, env })).rejects.toMatchObject({
        code: 1,
      });
    }
  }, 120_000);
});
