// Builds the bundled plug-ins, or those in the given folders, from AssemblyScript sources to
// plugins/dist/<name>.wasm. Needs npm packages only.
import { createHash } from 'node:crypto';
import { existsSync, realpathSync } from 'node:fs';
import { mkdir, readFile, readdir, rename, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = import.meta.dirname;
const ROOT = dirname(HERE);
const DIST = join(HERE, 'dist');
const TOOLS = ['echo', 'calculator', 'http-get'];
const CHANNELS = ['mock', 'telegram', 'slack', 'discord', 'whatsapp'];
const PLUGINS = [...TOOLS, ...CHANNELS];
const OPTIONS = ['-O3', '--noAssert', '--runtime', 'stub', '--maximumMemory', '256'];

/** Returns the folder of a plug-in's sources; a bundled one is next to this script. */
const assemblyFolder = (plugin) =>
  join(plugin.includes('/') ? resolve(plugin) : join(HERE, plugin), 'assembly');

const listSources = async (plugin) => {
  const folder = assemblyFolder(plugin);
  return (await readdir(folder)).sort().map((file) => join(folder, file));
};

/**
 * Hashes a built file's inputs: its sources, shared ones, this script and the toolchain's versions.
 */
const computeStamp = async (plugin) => {
  const require = createRequire(import.meta.url);
  const toolchain = ['assemblyscript/package.json', '@extism/as-pdk/package.json'].map((id) =>
    require.resolve(id),
  );
  const files = [
    ...(await listSources(plugin)),
    ...(await listSources('shared')),
    fileURLToPath(import.meta.url),
    ...toolchain,
  ];
  const hash = createHash('sha256');
  for (const file of files)
    hash
      .update(relative(ROOT, file))
      .update('\0')
      .update(await readFile(file))
      .update('\0');
  return hash.digest('hex');
};

const isFresh = async (name, stamp) => {
  const stampFile = join(DIST, `${name}.stamp`);
  if (!existsSync(join(DIST, `${name}.wasm`)) || !existsSync(stampFile)) return false;
  return (await readFile(stampFile, 'utf8')) === stamp;
};

const compile = async (plugin) => {
  const name = basename(plugin);
  const { default: asc } = await import('assemblyscript/asc');
  const entry = relative(ROOT, join(assemblyFolder(plugin), 'index.ts'));
  // Written under another name and renamed, so that a killed build leaves no partial module.
  const partial = join(DIST, `${name}.${process.pid}.partial.wasm`);
  const args = [entry, '--baseDir', ROOT, '--outFile', relative(ROOT, partial), ...OPTIONS];
  const { error, stderr } = await asc.main(args);
  if (error) throw new Error(`plug-in ${name} does not compile: ${error.message}\n${stderr.toString()}`);
  await rename(partial, join(DIST, `${name}.wasm`));
};

/** Builds plug-ins that are out of date. Returns the folder with the modules. */
export const buildPlugins = async (plugins = PLUGINS) => {
  await mkdir(DIST, { recursive: true });
  for (const plugin of plugins) {
    const name = basename(plugin);
    const stamp = await computeStamp(plugin);
    if (await isFresh(name, stamp)) continue;
    await compile(plugin);
    await writeFile(join(DIST, `${name}.stamp`), stamp);
  }
  return DIST;
};

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const given = process.argv.slice(2);
  const plugins = given.length > 0 ? given : PLUGINS;
  const folder = await buildPlugins(plugins);
  for (const name of plugins.map((plugin) => basename(plugin))) {
    const bytes = await readFile(join(folder, `${name}.wasm`));
    process.stdout.write(
      `${name}.wasm  ${bytes.length} bytes  sha256 ${createHash('sha256').update(bytes).digest('hex')}\n`,
    );
  }
}
