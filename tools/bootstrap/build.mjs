import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readJson, writeJsonAtomic } from './files.mjs';
import { bundledNode, readPackageJson, stampPath } from './project.mjs';
import { runCommand } from './run-command.mjs';
import { toUserError, UserError } from './user-error.mjs';

const SOURCE_ROOTS = ['apps', 'libs', 'tools', 'plugins'];
const ROOT_FILES = ['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.base.json'];
const SKIPPED = new Set(['node_modules', 'dist', 'build', 'generated']);
const SOURCE_FILE = /\.(ts|mts|mjs|json)$/;

function* sourceFiles(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (!SKIPPED.has(entry.name)) yield* sourceFiles(path);
    } else if (SOURCE_FILE.test(entry.name)) yield path;
  }
}

/** One hash over the names and contents of everything that a build reads. */
export const hashSources = (root) => {
  const folders = SOURCE_ROOTS.map((name) => join(root, name)).filter(existsSync);
  const files = [
    ...ROOT_FILES.map((name) => join(root, name)),
    ...folders.flatMap((folder) => [...sourceFiles(folder)]),
  ];
  const hash = createHash('sha256');
  for (const file of files.sort())
    hash
      .update(`${file.slice(root.length)}\0`)
      .update(readFileSync(file))
      .update('\0');
  return hash.digest('hex');
};

/** What a build leaves: somebody may have deleted some of it by hand. */
const outputs = (root) => [
  ...JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8')).references.map(({ path }) =>
    join(root, path, 'dist', '.tsbuildinfo'),
  ),
  ...(hasPlugins(root) ? [join(root, 'plugins', 'dist')] : []),
  ...(hasWorkflows(root) ? [join(root, 'libs', 'agent', 'workflows', 'dist', 'bundle.js')] : []),
];

const hasWorkflows = (root) => readPackageJson(root).scripts['build:workflows'] !== undefined;

const hasPlugins = (root) => readPackageJson(root).scripts['build:plugins'] !== undefined;

export const isBuilt = (root, sources = hashSources(root)) =>
  readJson(stampPath(root, 'build'))?.sources === sources && outputs(root).every((path) => existsSync(path));

const nodeEnv = ({ env, root }) => ({
  ...env,
  PATH: `${join(root, 'node_modules', '.bin')}:${env.PATH ?? ''}`,
});

const compile = async (context) => {
  const { root, signal, adopt } = context;
  const tsc = join(root, 'node_modules', 'typescript-native', 'bin', 'tsc');
  await runCommand(bundledNode(root), [tsc, '-b', 'tsconfig.json'], {
    cwd: root,
    env: nodeEnv(context),
    signal,
    adopt,
  });
};

/** The bundle is made of what was just compiled. */
const bundleWorkflows = async (context) => {
  const { root, signal, adopt } = context;
  if (!hasWorkflows(root)) return;
  const shell = ['-c', readPackageJson(root).scripts['build:workflows']];
  await runCommand('/bin/sh', shell, { cwd: root, env: nodeEnv(context), signal, adopt });
};

const buildPlugins = async (context) => {
  const { root, signal, adopt } = context;
  if (!hasPlugins(root)) return;
  const shell = ['-c', readPackageJson(root).scripts['build:plugins']];
  await runCommand('/bin/sh', shell, { cwd: root, env: nodeEnv(context), signal, adopt });
};

/** Compiles the TypeScript projects and the plug-ins, unless nothing that they are made of has changed. */
export const buildProject = async (context, progress) => {
  const { root } = context;
  const sources = hashSources(root);
  if (isBuilt(root, sources)) return;
  try {
    await Promise.all([
      progress.step('TypeScript: compiling it', async () => {
        await compile(context);
        await bundleWorkflows(context);
      }),
      progress.step('plug-ins: compiling them', () => buildPlugins(context)),
    ]);
    writeJsonAtomic(stampPath(root, 'build'), { sources });
  } catch (error) {
    context.signal?.throwIfAborted();
    const meant = toUserError(error, root);
    throw meant instanceof UserError
      ? meant
      : new UserError(`the build failed: ${error.message}`, { cause: error });
  }
};
