import { spawn, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as wait } from 'node:timers/promises';
import { cacheFolder } from '../../tools/bootstrap/project.mjs';

/** Every package of the proxy, its own among them, at one version. */
const PINS = fileURLToPath(new URL('../litellm.txt', import.meta.url));
const INSTALL_MS = 1_800_000;
const START_MS = 300_000;
const NEEDED = 'import sys, venv, ensurepip; sys.exit(0 if (3, 10) <= sys.version_info < (3, 15) else 1)';

export const litellmVersion = () => /^litellm==(.+)$/m.exec(readFileSync(PINS, 'utf8'))[1];

/** Why LiteLLM cannot be measured here: told in the report, in place of its figures. */
class Unmeasured extends Error {
  unmeasured = true;
}

const findPython = () => {
  const python = ['python3', 'python'].find((name) => spawnSync(name, ['-c', NEEDED]).status === 0);
  if (python === undefined)
    throw new Unmeasured('there is no Python from 3.10 to 3.14 with venv here (on Debian: python3-venv)');
  return python;
};

const run = async (command, args) => {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], timeout: INSTALL_MS });
  let said = '';
  child.stderr.on('data', (data) => (said += data));
  const [code, signal] = await once(child, 'close');
  if (code !== 0)
    throw new Unmeasured(`pip could not install it (${signal ?? code}): ${said.trim().split('\n').at(-1)}`);
};

/**
 * Installs LiteLLM once into the cache, from wheels only, so that no package code runs at install.
 * Returns the path of its program.
 */
const install = async () => {
  const pins = createHash('sha256').update(readFileSync(PINS)).digest('hex').slice(0, 16);
  const folder = join(cacheFolder(), 'benchmarks', `litellm-${pins}`);
  const [program, mark] = [join(folder, 'bin', 'litellm'), join(folder, 'complete')];
  if (existsSync(mark)) return program;
  const python = findPython();
  rmSync(folder, { recursive: true, force: true });
  console.log(`installing LiteLLM ${litellmVersion()} (some 700 MB, some minutes, once) …`);
  await run(python, ['-m', 'venv', folder]);
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--only-binary', ':all:'];
  await run(join(folder, 'bin', 'python'), [...pip, '--no-deps', '-r', PINS]);
  writeFileSync(mark, '');
  return program;
};

const freePort = async () => {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  return port;
};

const CONFIG = (providerUrl) => `
model_list:
  - model_name: mock
    litellm_params: { model: openai/mock, api_base: "${providerUrl}/v1", api_key: none }
  - model_name: claude-mock
    litellm_params: { model: anthropic/claude-mock, api_base: "${providerUrl}", api_key: none }
litellm_settings: { telemetry: false, num_retries: 0 }
general_settings: { disable_spend_logs: true }
`;

/**
 * One worker, no database, nothing of this environment but its path; its list of prices is the one
 * that it ships.
 */
const spawnProxy = (program, folder, { port, key }) => {
  const args = ['--config', join(folder, 'litellm.yaml'), '--host', '127.0.0.1', '--port', String(port)];
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    LITELLM_MASTER_KEY: key,
    LITELLM_LOCAL_MODEL_COST_MAP: 'True',
    LITELLM_LOG: 'ERROR',
  };
  return spawn(program, [...args, '--num_workers', '1'], { cwd: folder, env, stdio: 'ignore' });
};

const answers = (url) =>
  fetch(`${url}/health/liveliness`, { signal: AbortSignal.timeout(2_000) })
    .then(({ ok }) => ok)
    .catch(() => false);

/**
 * LiteLLM's proxy before this provider, in a process of its own: model `mock` in the format of
 * OpenAI, `claude-mock` in that of Anthropic. Throws an error with `unmeasured`
 * when Python, the package index or the proxy itself is not to be had.
 */
export const startLitellm = async (providerUrl) => {
  const program = await install();
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-litellm-'));
  writeFileSync(join(folder, 'litellm.yaml'), CONFIG(providerUrl));
  const [port, key] = [await freePort(), `sk-${randomBytes(24).toString('hex')}`];
  const child = spawnProxy(program, folder, { port, key });
  const gone = new Promise((resolve) => child.once('error', resolve).once('exit', resolve));
  const guard = () => child.kill('SIGKILL');
  process.once('exit', guard);
  const url = `http://127.0.0.1:${port}`;
  const close = async () => {
    child.kill('SIGTERM');
    await Promise.race([gone, wait(10_000, undefined, { ref: false }).then(guard)]);
    process.off('exit', guard);
    rmSync(folder, { recursive: true, force: true });
  };
  for (const deadline = performance.now() + START_MS; !(await answers(url)); await wait(250)) {
    if (performance.now() < deadline && child.exitCode === null && child.pid !== undefined) continue;
    await close();
    throw new Unmeasured('its proxy did not start');
  }
  return { baseUrl: `${url}/v1`, key, close };
};
