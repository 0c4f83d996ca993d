import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readJson, writeJsonAtomic } from './files.mjs';
import { runCommand } from './processes.mjs';
import { bundledNode, readPackageJson, STAMP_MODE, stampPath } from './project.mjs';
import { toUserError, UserError } from './user-error.mjs';

const SOURCE_ROOTS = ['apps', 'libs', 'tools', 'plugins', 'prisma/schema'];
const ROOT_FILES = ['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.base.json'];
const SKIPPED = new Set(['node_modules', 'dist', 'build', 'generated']);
const SOURCE_FILE = /\.(tsx?|mts|mjs|json|prisma|css|html|svg)$/;

/** @type {(folder: string) => string[]} */
const sourceFiles = (folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return SKIPPED.has(entry.name) ? [] : sourceFiles(path);
    return SOURCE_FILE.test(entry.name) ? [path] : [];
  });

/** Hashes the names and contents of all files that a build reads. */
const hashSources = (root) => {
  const folders = SOURCE_ROOTS.map((name) => join(root, name)).filter(existsSync);
  const files = [...ROOT_FILES.map((name) => join(root, name)), ...folders.flatMap(sourceFiles)];
  const hash = createHash('sha256');
  for (const file of files.sort())
    hash
      .update(`${file.slice(root.length)}\0`)
      .update(readFileSync(file))
      .update('\0');
  return hash.digest('hex');
};

const scriptOf = (root, name) => readPackageJson(root).scripts[name];

/** @type {(root: string) => string[]} */
const compilations = (root) =>
  JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8')).references.map(({ path }) =>
    join(root, path, 'dist', '.tsbuildinfo'),
  );

/**
 * Returns the time of the newest compilation of a project, ms. The joined modules of a service are
 * of use only if they are not older.
 * @type {(root: string) => number}
 */
export const compileTime = (root) =>
  Math.max(0, ...compilations(root).map((path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0));

/** Returns paths that exist after a build; a user may have deleted some of them. */
const outputs = (root) => [
  ...compilations(root),
  ...(scriptOf(root, 'build:bundles') ? [join(root, 'apps', 'agent', 'dist', 'bundle', 'main.mjs')] : []),
  ...(scriptOf(root, 'build:plugins') ? [join(root, 'plugins', 'dist')] : []),
  ...(scriptOf(root, 'build:dashboard') ? [join(root, 'apps', 'dashboard', 'dist', 'index.html')] : []),
  ...(scriptOf(root, 'build:workflows')
    ? [join(root, 'libs', 'agent', 'workflows', 'dist', 'bundle.js')]
    : []),
];

const isBuilt = (root, sources) =>
  readJson(stampPath(root, 'build'))?.sources === sources && outputs(root).every(existsSync);

const run = ({ root, env, signal, adopt }, command, args) => {
  const PATH = `${join(root, 'node_modules', '.bin')}:${env.PATH ?? ''}`;
  return runCommand(command, args, { cwd: root, env: { ...env, PATH }, signal, adopt });
};

const compile = (context) => {
  const tsc = join(context.root, 'node_modules', 'typescript-native', 'bin', 'tsc');
  return run(context, bundledNode(context.root), [tsc, '-b', 'tsconfig.json']);
};

/** Runs a script of package.json, if there is one with this name. */
const runScript = async (context, name) => {
  const script = scriptOf(context.root, name);
  if (script !== undefined) await run(context, '/bin/sh', ['-c', script]);
};

/**
 * Compiles the TypeScript projects, the plug-ins and the dashboard, unless no source has changed.
 * @type {import('./types.js').PrepareStep}
 */
export const buildProject = async (context, progress) => {
  const { root } = context;
  const sources = hashSources(root);
  if (isBuilt(root, sources)) return;
  try {
    await Promise.all([
      progress.step('TypeScript: compiling it', async () => {
        // Compiled with the sources that import it.
        await runScript(context, 'build:client');
        await compile(context);
        // Made from the compiled workflows.
        await runScript(context, 'build:workflows');
        await runScript(context, 'build:bundles');
      }),
      progress.step('plug-ins: compiling them', () => runScript(context, 'build:plugins')),
      progress.step('dashboard: building it', () => runScript(context, 'build:dashboard')),
    ]);
    writeJsonAtomic(stampPath(root, 'build'), { sources }, STAMP_MODE);
  } catch (error) {
    context.signal?.throwIfAborted();
    const explained = toUserError(error, root);
    throw explained instanceof UserError
      ? explained
      : new UserError(`the build failed: ${error.message}`, { cause: error });
  }
};
