// Runs on any Node of npm, without packages: it installs and builds what the benchmarks need.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const PREPARED = 'ANTIPHON_BENCH_PREPARED';

const runOrEnd = (command, args, cwd) => {
  const { status, error } = spawnSync(command, args, { cwd, stdio: 'inherit' });
  if (error !== undefined) console.error(`${command}: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
};

const readJson = (path) => JSON.parse(readFileSync(here(path), 'utf8'));

/** Returns true if each peer is installed at its version. */
const hasPeers = () => {
  try {
    const { dependencies } = readJson('../package.json');
    return Object.entries(dependencies).every(
      ([name, version]) => readJson(`../node_modules/${name}/package.json`).version === version,
    );
  } catch {
    return false;
  }
};

/**
 * The project is installed and built by its own bootstrap; the peers from a lock of their own, only
 * here.
 */
const prepareAll = async () => {
  const { prepare } = await import('../../tools/bootstrap/prepare.mjs');
  const { cacheFolder, projectRoot } = await import('../../tools/bootstrap/project.mjs');
  const { createProgress } = await import('../../tools/bootstrap/progress.mjs');
  const { signal } = new AbortController();
  const context = {
    root: projectRoot,
    cache: cacheFolder(),
    home: here('../home'),
    env: process.env,
    signal,
  };
  await prepare(
    context,
    createProgress((line) => console.log(line)),
  );
  if (!hasPeers()) runOrEnd('npm', ['ci'], here('..'));
};

/**
 * Returns in a process that runs on the project's own Node with everything installed. In any other
 * process it prepares that, runs the script there with the same arguments, and ends with its code.
 */
export const runPrepared = async (script) => {
  if (process.env[PREPARED] === '1') return;
  await prepareAll().catch((error) => {
    console.error(error.exitCode === undefined ? error : `antiphon: ${error.message}`);
    process.exit(error.exitCode ?? 1);
  });
  const { status } = spawnSync(here('../../node_modules/.bin/node'), [script, ...process.argv.slice(2)], {
    stdio: 'inherit',
    env: { ...process.env, [PREPARED]: '1' },
  });
  process.exit(status ?? 1);
};
