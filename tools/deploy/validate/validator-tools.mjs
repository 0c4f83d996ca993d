import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { acquireLock } from '../../bootstrap/lock.mjs';
import { findOnPath } from '../../bootstrap/engines/probe.mjs';
import { runCommand } from '../../bootstrap/processes.mjs';
import { UserError } from '../../bootstrap/user-error.mjs';

const PINS = join(import.meta.dirname, '..', 'validators');
const PIN_FILES = ['go.mod', 'go.sum', 'requirements.txt', 'compose-check/main.go'];
const GO_TOOLS = {
  kustomize: 'sigs.k8s.io/kustomize/kustomize/v5',
  'compose-check': './compose-check',
};
const BUILD_MS = 30 * 60_000;
const INSTALL_MS = 5 * 60_000;

/** Without its tools nothing is validated, and that is no success. */
const unavailable = (what, toDo, cause) =>
  new UserError(`validate:deploy cannot validate anything: ${what}\nWhat to do: ${toDo}`, {
    exitCode: 2,
    cause,
  });

const GO_TODO =
  'install Go 1.24 or newer (go.dev/dl) so that `go` is on PATH, and see that its module proxy can be reached';
const PYTHON_TODO =
  'install Python 3.10 or newer with its venv module (on Debian: python3-venv), and see that its package index can be reached';

const pythonOf = (env) => ['python3', 'python'].find((name) => findOnPath(name, env.PATH) !== null);

/** Everything that is missing at once, and before minutes are spent on what is there. */
const assertInstalled = (env) => {
  const missing = [
    findOnPath('go', env.PATH) === null && [
      'Go is not installed, which builds kustomize and compose-go',
      GO_TODO,
    ],
    pythonOf(env) === undefined && ['Python is not installed, which runs kubernetes-validate', PYTHON_TODO],
  ].filter(Boolean);
  if (missing.length === 0) return;
  throw unavailable(missing.map(([what]) => what).join('; '), missing.map(([, toDo]) => toDo).join('; '));
};

/**
 * Folders have the name of what they were made from, so that a raised version is another folder.
 */
const toolsFolder = (cache) => {
  const hash = createHash('sha256').update(`${process.platform}-${process.arch}\0`);
  for (const file of PIN_FILES) hash.update(readFileSync(join(PINS, file))).update('\0');
  return join(cache, 'deploy-tools', hash.digest('hex').slice(0, 16));
};

const buildGoTools = async (bin, { env, signal, adopt }, onProgress) => {
  for (const [name, source] of Object.entries(GO_TOOLS)) {
    onProgress(`building ${name} from source, which takes a minute or two, once`);
    const args = ['build', '-mod=readonly', '-trimpath', '-o', join(bin, name), source];
    try {
      await runCommand('go', args, { cwd: PINS, env, signal, adopt, timeoutMs: BUILD_MS });
    } catch (error) {
      signal?.throwIfAborted();
      throw unavailable(error.message, GO_TODO, error);
    }
  }
};

const installSchemas = async (folder, { env, signal, adopt }, onProgress) => {
  const python = pythonOf(env);
  onProgress('installing kubernetes-validate');
  const options = { env, signal, adopt, timeoutMs: INSTALL_MS };
  const venv = join(folder, 'venv');
  try {
    await runCommand(python, ['-m', 'venv', venv], options);
    const pip = [
      join(venv, 'bin', 'python'),
      '-m',
      'pip',
      'install',
      '--quiet',
      '--no-deps',
      '--disable-pip-version-check',
    ];
    await runCommand(
      pip[0],
      [...pip.slice(1), '--only-binary=:all:', '-r', join(PINS, 'requirements.txt')],
      options,
    );
  } catch (error) {
    signal?.throwIfAborted();
    throw unavailable(error.message, PYTHON_TODO, error);
  }
};

const programsIn = (folder) => ({
  kustomize: join(folder, 'bin', 'kustomize'),
  composeCheck: join(folder, 'bin', 'compose-check'),
  python: join(folder, 'venv', 'bin', 'python'),
});

const READY = 'ready';
const isReady = (folder) => existsSync(join(folder, READY));

/** Builds the programs in place, because a venv contains its own path. Writes the mark last. */
const fill = async (folder, context, onProgress) => {
  assertInstalled(context.env);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const aside = mkdtempSync(join(folder, 'new-'));
  await buildGoTools(aside, context, onProgress);
  renameSync(aside, join(folder, 'bin'));
  await installSchemas(folder, context, onProgress);
  writeFileSync(join(folder, READY), '');
};

/** Whether the programs are in the cache already. @param {string} cache */
export const hasValidators = (cache) => isReady(toolsFolder(cache));

/**
 * Returns the validators from the cache. Builds them once where they are missing, in two to three
 * minutes. Throws a UserError with exit code 2 when Go or Python is missing.
 */
export const ensureValidators = async (context, onProgress = () => {}) => {
  const folder = toolsFolder(context.cache);
  if (isReady(folder)) return programsIn(folder);
  const lockPath = join(context.cache, 'locks', 'deploy-tools.lock');
  mkdirSync(dirname(lockPath), { recursive: true });
  const lock = await acquireLock(lockPath, {
    signal: context.signal,
    onWait: ({ pid }) => onProgress(`waiting for process ${pid}, which is making them`),
  });
  try {
    // Another process may have built them during the wait.
    if (!isReady(folder)) await fill(folder, { ...context, adopt: lock.adopt }, onProgress);
    return programsIn(folder);
  } finally {
    lock.endChildren();
    lock.release();
  }
};
