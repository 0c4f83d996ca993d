import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { cacheFolder } from '../bootstrap/project.mjs';

/** Version of Phoenix, a trace backend that understands GenAI conventions. */
const VERSION = '20.26.1';
const INSTALL_MS = 900_000;
const START_MS = 120_000;

const run = (command, args, timeoutMs) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'], timeout: timeoutMs });
    child.once('error', reject);
    child.once('exit', (code) =>
      code === 0
        ? resolve()
        : reject(new Error(`${command} ${args.join(' ')} failed with exit code ${code}`)),
    );
  });

/**
 * Installs Phoenix once into the cache (about 1 GB, some minutes). Returns the path of its program.
 */
const install = async () => {
  const folder = join(cacheFolder(), 'nightly', `phoenix-${VERSION}`);
  const [program, mark] = [join(folder, 'bin', 'phoenix'), join(folder, 'complete')];
  if (existsSync(mark)) return program;
  rmSync(folder, { recursive: true, force: true });
  console.log(`installing arize-phoenix ${VERSION}: some minutes, once …`);
  await run('python3', ['-m', 'venv', folder], INSTALL_MS);
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', `arize-phoenix==${VERSION}`];
  await run(join(folder, 'bin', 'python'), pip, INSTALL_MS);
  writeFileSync(mark, VERSION);
  return program;
};

const freePort = () =>
  new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });

/** Starts Phoenix on free ports. Returns its address, a reader of its spans, and `stop`. */
export const startPhoenix = async () => {
  const program = await install();
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-phoenix-'));
  const [port, grpcPort] = [await freePort(), await freePort()];
  const env = {
    ...process.env,
    PHOENIX_HOST: '127.0.0.1',
    PHOENIX_PORT: String(port),
    PHOENIX_GRPC_PORT: String(grpcPort),
    PHOENIX_WORKING_DIR: folder,
    PHOENIX_TELEMETRY_ENABLED: 'false',
  };
  const child = spawn(program, ['serve'], { env, stdio: 'ignore' });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const url = `http://127.0.0.1:${port}`;
  const stop = async () => {
    child.kill('SIGTERM');
    await Promise.race([ended, pause(10_000).then(() => child.kill('SIGKILL'))]);
    rmSync(folder, { recursive: true, force: true });
  };
  const isHealthy = () =>
    fetch(`${url}/healthz`)
      .then(({ ok }) => ok)
      .catch(() => false);
  for (const deadline = Date.now() + START_MS; !(await isHealthy()); await pause(500)) {
    if (Date.now() < deadline && child.exitCode === null) continue;
    await stop();
    throw new Error(`Phoenix did not start within ${START_MS / 1_000} s`);
  }
  const spans = async () => {
    const answer = await fetch(`${url}/v1/projects/default/spans?limit=1000`);
    // The project is created with its first span.
    return answer.status === 404 ? [] : (await answer.json()).data;
  };
  return { url, spans, stop };
};
