import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { setTimeout as wait } from 'node:timers/promises';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

/** Runs one of the project's two commands, under a bound; its output is shown when it fails. */
const command = (script, args, env, timeoutMs) =>
  new Promise((done, fail) => {
    const child = spawn(process.execPath, [join(ROOT, 'tools/bootstrap', script), ...args], {
      cwd: ROOT,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data));
    const guard = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    child.once('exit', (code, signal) => {
      clearTimeout(guard);
      if (code === 0) done(output);
      else
        fail(new Error(`${script} ${args.join(' ')} ended with ${signal ?? code}:\n${output.slice(-4_000)}`));
    });
  });

/** Agents without tools, for the part `agents`. The default agent is another one. */
export const AGENTS = Array.from({ length: 10 }, (_, index) => `agent-${index}`);

/** Agent with the tools for files, for the part `files`. */
export const FILES_AGENT = 'files';

/** Returns the provider of a stack, whose calls cost nothing. */
export const providerConfig = (providerUrl) => `
[[providers]]
name = "bench"
kind = "openai-compatible"
base_url = "${providerUrl}/v1"

[[prices]]
provider = "bench"
model = "mock"
input_per_mtok = 0
output_per_mtok = 0
`;

const CONFIG = (providerUrl) => `${providerConfig(providerUrl)}
[[agents]]
id = "main"
provider = "bench"
model = "mock"
tools = ["echo"]

${AGENTS.map((id) => `[[agents]]\nid = "${id}"\nprovider = "bench"\nmodel = "mock"`).join('\n\n')}

[[providers]]
name = "scripted"
kind = "scripted"

[[agents]]
id = "${FILES_AGENT}"
provider = "scripted"
tools = ["echo", "read", "edit", "search"]
`;

/** Removes engines that already run and keys from the environment of the benchmark's stack. */
const FOREIGN = /^ANTIPHON_|_API_KEY$/;
const ownEnvironment = (home, config) => ({
  ...Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !FOREIGN.test(name) || ['ANTIPHON_CACHE', 'ANTIPHON_NODE_OPTIONS'].includes(name),
    ),
  ),
  ANTIPHON_HOME: home,
  ANTIPHON_CONFIG: config,
});

/** pid → parent pid and resident KiB of every process, as `ps` has it. */
const listProcesses = async () => {
  const { stdout } = await run('ps', ['-eo', 'pid=,ppid=,rss=']);
  return stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number));
};

/**
 * Proportional share of a process's memory in KiB (pages shared with others counted once in all),
 * where the system tells.
 */
export const shareOf = (pid, rss) => {
  try {
    return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? rss);
  } catch {
    return rss;
  }
};

/** MiB of these processes and all that descend from them. */
const memoryOf = async (roots) => {
  const all = await listProcesses();
  const family = new Set(roots);
  for (let size = 0; size !== family.size;) {
    size = family.size;
    for (const [pid, parent] of all) if (family.has(parent)) family.add(pid);
  }
  const members = all.filter(([pid]) => family.has(pid));
  return members.reduce((sum, [pid, , rss]) => sum + shareOf(pid, rss), 0) / 1_024;
};

/**
 * A stack of the benchmark's own, in a home of its own, started and stopped by the project's two
 * commands. The first start may install, build and fetch; `restart` tells how long one takes with
 * everything cached. `args` are arguments of `npm start`, such as `--compact`. `write` returns
 * another configuration for the folder of the stack, and `extra` variables of its processes. A
 * named `kept` folder stays after `stop`, with its data, for another start.
 */
export const startStack = async (providerUrl, args = [], { write, extra, kept } = {}) => {
  const folder = kept ?? mkdtempSync(join(tmpdir(), 'antiphon-bench-'));
  mkdirSync(folder, { recursive: true });
  const config = join(folder, 'antiphon.toml');
  const home = join(folder, 'home');
  writeFileSync(config, write?.(folder) ?? CONFIG(providerUrl));
  const env = { ...ownEnvironment(home, config), ...extra?.(folder) };
  const readStack = () => JSON.parse(readFileSync(join(home, 'stack.json'), 'utf8'));
  const up = async (timeoutMs) => {
    const from = performance.now();
    await command('start.cjs', ['--detach', ...args], env, timeoutMs);
    return performance.now() - from;
  };
  const down = () => command('stop.cjs', [], env, 60_000);
  /** None while it is down. */
  const pids = () => {
    if (!existsSync(join(home, 'stack.json'))) return [];
    const { supervisor, services, engines } = readStack();
    const entries = [...Object.values(services).flat(), ...Object.values(engines)];
    return [supervisor.pid, ...entries.map(({ pid }) => pid)].filter(Boolean);
  };
  try {
    await up(1_500_000);
  } catch (error) {
    await down().catch(() => undefined);
    throw error;
  }
  return {
    /** Environment of commands that use this stack. */
    env,
    pids,
    /** `stack.json` as it is now. */
    read: readStack,
    gatewayUrl: () => readStack().urls.gateway,
    adminUrl: () => readFileSync(resolve(home, readStack().credentials.databaseUrlFile), 'utf8').trim(),
    /** NATS, as the operator. */
    nats: () => {
      const file = resolve(home, readStack().credentials.natsUsersFile);
      const { url, users } = JSON.parse(readFileSync(file, 'utf8'));
      return { url, ...users.operator };
    },
    /** Milliseconds from the command to `ready`, with everything cached. */
    restart: async () => {
      await down();
      return up(120_000);
    },
    /** MiB once it has been left alone for ten seconds. */
    idleMemory: async () => {
      await wait(10_000);
      return memoryOf(pids());
    },
    stop: async () => {
      await down();
      if (kept !== undefined) return;
      // Started as root, PostgreSQL has its data outside of the home.
      const engine = join(home, 'postgres.json');
      const { dataDir } = existsSync(engine) ? JSON.parse(readFileSync(engine, 'utf8')) : {};
      if (dataDir) rmSync(dirname(dataDir), { recursive: true, force: true });
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
