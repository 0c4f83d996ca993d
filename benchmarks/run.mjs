// `npm run bench [-- --quick] [-- part …]`: measures Antiphon and its peers, prints the figures and
// writes RESULTS.md. Parts: route provider sandbox append projections turn first-frame events tasks
// agents identity files cli growth start.
// It runs on any Node of npm, and starts the project's own Node.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const PARTS = [
  'route',
  'provider',
  'sandbox',
  'append',
  'projections',
  'turn',
  'first-frame',
  'events',
  'tasks',
  'agents',
  'identity',
  'files',
  'cli',
  'growth',
  'start',
];

const runOrEnd = (command, args, cwd) => {
  const { status, error } = spawnSync(command, args, { cwd, stdio: 'inherit' });
  if (error !== undefined) console.error(`${command}: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
};

const parseArguments = (args) => {
  const wanted = args.filter((arg) => arg !== '--quick');
  const unknown = wanted.find((part) => !PARTS.includes(part));
  if (unknown !== undefined) {
    console.error(`unknown part "${unknown}"; usage: npm run bench -- [--quick] [${PARTS.join('] [')}]`);
    process.exit(2);
  }
  return {
    quick: args.includes('--quick'),
    parts: wanted.length > 0 ? PARTS.filter((part) => wanted.includes(part)) : PARTS,
  };
};

const readJson = (path) => JSON.parse(readFileSync(here(path), 'utf8'));

/** Returns true if each peer is installed at its version. */
const hasPeers = () => {
  try {
    const { dependencies } = readJson('./package.json');
    return Object.entries(dependencies).every(
      ([name, version]) => readJson(`./node_modules/${name}/package.json`).version === version,
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
  const { prepare } = await import('../tools/bootstrap/prepare.mjs');
  const { cacheFolder, projectRoot } = await import('../tools/bootstrap/project.mjs');
  const { createProgress } = await import('../tools/bootstrap/progress.mjs');
  const { signal } = new AbortController();
  const context = { root: projectRoot, cache: cacheFolder(), home: here('./home'), env: process.env, signal };
  await prepare(
    context,
    createProgress((line) => console.log(line)),
  );
  if (!hasPeers()) runOrEnd('npm', ['ci'], here('.'));
};

const options = parseArguments(process.argv.slice(2));
if (process.env.ANTIPHON_BENCH_PREPARED !== '1') {
  await prepareAll().catch((error) => {
    console.error(error.exitCode === undefined ? error : `antiphon: ${error.message}`);
    process.exit(error.exitCode ?? 1);
  });
  const { status } = spawnSync(
    here('../node_modules/.bin/node'),
    [here('./run.mjs'), ...process.argv.slice(2)],
    {
      stdio: 'inherit',
      env: { ...process.env, ANTIPHON_BENCH_PREPARED: '1' },
    },
  );
  process.exit(status ?? 1);
}

const { measure } = await import('./lib/measure.mjs');
const { markdown, failed } = await measure(options);
console.log(markdown);
// A part of the whole, or a quick look, does not replace what the whole has shown.
if (!options.quick && options.parts.length === PARTS.length) writeFileSync(here('./RESULTS.md'), markdown);
if (failed.length > 0)
  console.error(
    `${failed.length} figure(s) miss what they must be: ${failed.map(({ what }) => what).join('; ')}`,
  );
process.exit(failed.length > 0 ? 1 : 0);
