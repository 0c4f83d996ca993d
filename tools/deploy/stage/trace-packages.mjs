import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const SPECIFIER = /(\.{1,2}\/[\w./-]+|[@a-z][\w@./-]*)/.source;
const IMPORT = new RegExp(`(?:\\bfrom\\s*|\\bimport\\s*\\(\\s*|^\\s*import\\s*)['"]${SPECIFIER}['"]`, 'gm');
const OWN = '@antiphon/';

/** @returns {{name: string, subpath: string}} of `@scope/name/sub/path` */
const splitSpecifier = (specifier) => {
  const parts = specifier.split('/');
  const name = parts.slice(0, specifier.startsWith('@') ? 2 : 1).join('/');
  return { name, subpath: `.${specifier.slice(name.length)}` };
};

const readManifest = (folder) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

/** The folder of a package as Node finds it from another folder, or null. */
export const findPackage = (root, from, name) => {
  for (let folder = from; ; folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', name);
    if (existsSync(join(candidate, 'package.json'))) return candidate;
    if (folder === root || folder === dirname(folder)) return null;
  }
};

/** `exports` of our own packages are plain: a name, or a name with one `*`, to `{default}`. */
const resolveOwn = (folder, subpath) => {
  const { exports: table, name } = readManifest(folder);
  const exact = table[subpath];
  if (exact !== undefined) return join(folder, exact.default);
  const pattern = Object.entries(table).find(
    ([key]) => key.endsWith('*') && subpath.startsWith(key.slice(0, -1)),
  );
  if (pattern === undefined) throw new Error(`${name} exports no ${subpath}`);
  const [key, { default: target }] = pattern;
  return join(folder, target.replace('*', subpath.slice(key.length - 1)));
};

const importsOf = (file) => {
  if (!existsSync(file)) throw new Error(`${file} is not there: build the project first (npm run build)`);
  return [...readFileSync(file, 'utf8').matchAll(IMPORT)].map((match) => match[1] ?? '');
};

/** Whether npm would install a package on this platform. */
const fits = ({ os, cpu, libc }, arch) =>
  [
    [os, 'linux'],
    [cpu, arch],
    [libc, 'glibc'],
  ].every(([allowed, value]) => allowed === undefined || allowed.includes(value));

const dependenciesOf = (manifest) => {
  const optionalPeers = manifest.peerDependenciesMeta ?? {};
  const peers = Object.keys(manifest.peerDependencies ?? {}).filter((name) => !optionalPeers[name]?.optional);
  const optional = Object.keys(manifest.optionalDependencies ?? {});
  const required = [...Object.keys(manifest.dependencies ?? {}), ...peers].filter(
    (name) => !optional.includes(name),
  );
  return { required, optional };
};

/** Our own files that a program reaches, and the packages of others that they name. */
const traceOwn = (root, main, leavesOut) => {
  const ownPackages = new Map();
  const externals = new Set();
  const seen = new Set();
  const follow = (file, specifier) => {
    if (specifier.startsWith('.')) return visit(join(dirname(file), specifier));
    if (specifier.startsWith('node:')) return undefined;
    const { name, subpath } = splitSpecifier(specifier);
    if (leavesOut.includes(name)) return undefined;
    if (!name.startsWith(OWN)) return void externals.add(name);
    const folder = join(root, 'node_modules', name);
    ownPackages.set(name, folder);
    return visit(resolveOwn(folder, subpath));
  };
  const visit = (file) => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const specifier of importsOf(file)) follow(file, specifier);
  };
  visit(join(root, main));
  return { ownPackages, externals };
};

/** The packages of others with everything that they depend on, as folders relative to the root. */
const closeOver = (root, externals, arch, leavesOut) => {
  const found = new Map();
  const add = (from, name, required) => {
    if (leavesOut.includes(name)) return;
    const folder = findPackage(root, from, name);
    if (folder === null) {
      if (required)
        throw new Error(`${name}, which ${relative(root, from) || 'our code'} needs, is not installed`);
      return;
    }
    const path = relative(root, folder);
    if (found.has(path)) return;
    const manifest = readManifest(folder);
    if (!fits(manifest, arch)) return;
    found.set(path, manifest.name);
    const needs = dependenciesOf(manifest);
    for (const dependency of needs.required) add(folder, dependency, true);
    for (const dependency of needs.optional) add(folder, dependency, false);
  };
  for (const name of externals) add(root, name, true);
  return found;
};

/**
 * Which packages a compiled program needs at run time: found by following its imports through our own packages, then
 * the declared dependencies of everybody else's, for Linux and one processor.
 * @returns {{own: Map<string, string>, others: Map<string, string>}} ours: folder by name; others': name by the path
 * under the root, which may be nested in another package's `node_modules`
 * @throws when something is not built or not installed
 */
export const tracePackages = (root, main, { arch, leavesOut = [] }) => {
  const { ownPackages, externals } = traceOwn(root, main, leavesOut);
  return { own: ownPackages, others: closeOver(root, externals, arch, leavesOut) };
};
