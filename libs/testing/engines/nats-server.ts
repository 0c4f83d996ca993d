import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { recordHome } from '@antiphon/bootstrap/test-run';
import { sleep } from '@antiphon/kernel';

export interface TestNatsServerOptions {
  /** Additional lines of the server's configuration, such as `authorization { … }`. */
  readonly config?: string;
  /** Additional settings of JetStream, such as `max_file_store: 8GB`. */
  readonly jetstream?: string;
  /** Variables that its configuration refers to. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * A nats-server with JetStream for one spec that restarts it, needs its users, or owns its streams.
 */
export interface TestNatsServer {
  readonly url: string;
  /** Kills it without a shutdown, as a crash would. */
  kill(): Promise<void>;
  /** Restarts it on the same port with the same store. */
  start(): Promise<void>;
  /** Deletes JetStream's store. Call it only while the server is stopped. */
  wipe(): Promise<void>;
  /** Kills it and removes its folder. */
  remove(): Promise<void>;
}

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return address !== null && typeof address === 'object' ? address.port : 0;
};

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    // A ready server sends its INFO line at once; a port that only accepts is not ready.
    socket.once('data', () => resolve((socket.destroy(), true)));
    socket.once('error', () => resolve(false));
  });

const waitUntilReady = async (port: number, child: ChildProcess, log: () => string): Promise<void> => {
  const deadline = Date.now() + 10_000;
  while (!(await isListening(port))) {
    if (child.exitCode !== null || Date.now() > deadline)
      throw new Error(`nats-server did not start: ${log()}`);
    await sleep(10);
  }
};

/**
 * Starts the program of ANTIPHON_TEST_NATS_SERVER, else `nats-server` of PATH, on a free loopback
 * port.
 */
export const startNatsServer = async (options: TestNatsServerOptions = {}): Promise<TestNatsServer> => {
  const folder = await mkdtemp(join(tmpdir(), 'antiphon-nats-'));
  recordHome(folder, 'folder');
  const port = await freePort();
  const store = join(folder, 'jetstream');
  const configFile = join(folder, 'nats.conf');
  await writeFile(
    configFile,
    `jetstream { store_dir: "${store}"\n${options.jetstream ?? ''} }\n${options.config ?? ''}\n`,
  );
  let child: ChildProcess | undefined;

  const start = async (): Promise<void> => {
    const program = process.env['ANTIPHON_TEST_NATS_SERVER'] ?? 'nats-server';
    let output = '';
    child = spawn(program, ['-a', '127.0.0.1', '-p', String(port), '-c', configFile], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...options.env },
    });
    child.stderr?.on('data', (chunk: Buffer) => (output = (output + chunk.toString()).slice(-4_000)));
    await once(child, 'spawn');
    await waitUntilReady(port, child, () => output);
  };
  const kill = async (): Promise<void> => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };

  await start();
  return {
    url: `nats://127.0.0.1:${port}`,
    kill,
    start,
    wipe: () => rm(store, { recursive: true, force: true }),
    remove: async () => {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
};
