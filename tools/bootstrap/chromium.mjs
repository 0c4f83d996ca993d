import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runNpm } from './install.mjs';
import { runCommand } from './processes.mjs';
import { bundledNode } from './project.mjs';

/** Places of an installed Chromium, or of a browser that is built from it. */
export const CHROMIUM_PLACES = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** Package that ships the program, pinned with its hash by the lock next to it. */
const BROWSER = fileURLToPath(new URL('browser', import.meta.url));
const PACKAGE = '@sparticuz/chromium';
const APT_MS = 300_000;

/** Unpacks the program, its fonts, and the libraries that a system may lack, into `TMPDIR`. */
const UNPACK = `
  import chromium, { inflate } from '${PACKAGE}';
  import { join } from 'node:path';
  await chromium.executablePath();
  await inflate(join('node_modules/${PACKAGE}/bin', 'al2023.tar.br'));
`;

/** Starts the program. The libraries of the package count where the system has none. */
const START = `#!/bin/sh
here=$(dirname "$0")
if ldd "$here/chromium" 2>/dev/null | grep -q 'not found'; then
  export LD_LIBRARY_PATH="$here/al2023/lib\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
[ -e /etc/fonts/fonts.conf ] || export FONTCONFIG_PATH="$here/fonts"
exec "$here/chromium" "$@"
`;

/**
 * Installs Debian's package. Returns null, or why that failed.
 * @type {(context: { env: NodeJS.ProcessEnv; signal?: AbortSignal }, machine: { apt: string; isRoot: boolean }) => Promise<string | null>}
 */
const installByApt = async ({ env, signal }, { apt, isRoot }) => {
  if (!isRoot) return 'apt-get needs root';
  if (!existsSync(apt)) return 'this system has no apt-get';
  const options = { env: { ...env, DEBIAN_FRONTEND: 'noninteractive' }, signal, timeoutMs: APT_MS };
  try {
    await runCommand(apt, ['update', '-qq'], options);
    await runCommand(apt, ['install', '-y', '-qq', 'chromium'], options);
    return null;
  } catch (error) {
    signal?.throwIfAborted();
    return `apt-get failed: ${error.message}`;
  }
};

/**
 * Installs the package of the registry into the cache. Returns the path of the program.
 * @type {(context: import('./types.js').ChromiumContext) => Promise<string>}
 */
const installByNpm = async ({ cache, root, env, signal }) => {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error(`${PACKAGE} has no program for ${process.platform} ${process.arch}`);
  const { dependencies } = JSON.parse(readFileSync(join(BROWSER, 'package.json'), 'utf8'));
  const folder = join(cache, 'chromium', dependencies[PACKAGE]);
  const program = join(folder, 'start');
  if (existsSync(program)) return program;
  const part = `${folder}.${process.pid}.part`;
  try {
    mkdirSync(part, { recursive: true });
    for (const name of ['package.json', 'package-lock.json'])
      copyFileSync(join(BROWSER, name), join(part, name));
    await runNpm(['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
      root: part,
      env,
      signal,
      adopt: undefined,
    });
    const options = { cwd: part, env: { ...env, TMPDIR: part }, signal };
    await runCommand(bundledNode(root), ['--input-type=module', '--eval', UNPACK], options);
    rmSync(join(part, 'node_modules'), { recursive: true });
    writeFileSync(join(part, 'start'), START, { mode: 0o755 });
    rmSync(folder, { recursive: true, force: true });
    renameSync(part, folder);
    return program;
  } finally {
    rmSync(part, { recursive: true, force: true });
  }
};

/** Projects and files of tests that drive a browser. */
const DRIVERS = /^(?:e2e|compact)$|dashboard|client-drops/;

/** Returns true if these arguments of Jest select tests that may drive a browser. */
export const needsChromium = (args) =>
  !args.some((arg) => ['--selectProjects', '--runTestsByPath'].includes(arg)) ||
  args.some((arg) => DRIVERS.test(arg));

/**
 * Finds Chromium, or gets it: by Debian's package where root permits that, else by a package of
 * the registry. Resolves with the value of `ANTIPHON_CHROMIUM` for the tests. It is undefined for
 * an installed browser, and where none can be installed: then the tests say what to do.
 * @type {import('./types.js').PrepareChromium}
 */
export const prepareChromium = async (
  context,
  progress,
  { places = CHROMIUM_PLACES, apt = '/usr/bin/apt-get', isRoot = process.getuid?.() === 0 } = {},
) => {
  const { env, signal } = context;
  if (env.ANTIPHON_CHROMIUM) return env.ANTIPHON_CHROMIUM;
  const isInstalled = () => places.some((place) => existsSync(place));
  if (isInstalled()) return undefined;
  return progress.step('Chromium for the tests of the dashboard: installing it', async () => {
    const problem = await installByApt(context, { apt, isRoot });
    if (problem === null && isInstalled()) return undefined;
    try {
      return await installByNpm(context);
    } catch (error) {
      signal?.throwIfAborted();
      progress.note(`there is no Chromium: ${problem ?? 'apt-get installed none'}; ${error.message}`);
      return undefined;
    }
  });
};
