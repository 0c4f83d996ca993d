import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const SPECIFIER = /(\.{1,2}\/[\w./-]+|[@a-z][\w@./-]*)/.source;
const IMPORT = new RegExp(`(?:\\bfrom\\s*|\\bimport\\s*\\(\\s*|^\\s*import\\s*)['"]${SPECIFIER}['"]`, 'gm');
/** Matches a call that runs the functions of `text-jobs.js`, next to its file, in threads. */
const TEXT_JOBS = /\btextJobsOf\(import\.meta\.url\)/;
/** Matches the program of a worker thread, which no import names. */
const THREAD = /new URL\('(\.{1,2}\/[\w./-]+\.js)', import\.meta\.url\)/g;
/** Matches a line whose JSDoc names a type of another module, which is no import at run time. */
const JSDOC_IMPORT = /^.*@\w+ \{.*\bimport\('.*$/gm;
const OWN = '@antiphon/';

/** Splits `@scope/name/sub/path` into name and subpath. */
const splitSpecifier = (specifier) => {
  const parts = specifier.split('/');
  const name = parts.slice(0, specifier.startsWith('@') ? 2 : 1).join('/');
  return { name, subpath: `.${specifier.slice(name.length)}` };
};

const readManifest = (folder) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

/** Returns the folder of a package as Node resolves it from another folder, or null. */
export const findPackage = (root, from, name) => {
  for (let folder = from; ; folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', name);
    if (existsSync(join(candidate, 'package.json'))) return candidate;
    if (folder === root || folder === dirname(folder)) return null;
  }
};

/** Resolves an own package's `exports`, which map a name, or one with a `*`, to `{default}`. */
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
  if (!existsSync(file))
    throw new Error(`${file} is missing. What to do: build the project first (npm run build)`);
  const code = readFileSync(file, 'utf8').replaceAll(JSDOC_IMPORT, '');
  const threads = [...code.matchAll(THREAD)].map(([, path]) => path);
  if (TEXT_JOBS.test(code)) threads.push('./text-jobs.js');
  return [
    ...[...code.matchAll(IMPORT)].map((match) => match[1] ?? ''),
    ...threads.filter((path) => existsSync(join(dirname(file), path))),
  ];
};

/** Returns true if npm installs a package on this platform. */
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

/** Returns the own packages that a program imports, and the external ones that they name. */
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

/** Returns external packages with all dependencies, as folders relative to the root. */
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
 * Finds the packages that a compiled program needs at run time on Linux. Follows its imports
 * through own packages, then the declared dependencies of external ones. `own` maps a name to its
 * folder. `others` maps a path under the root, which may be nested, to a name. Throws for missing
 * packages.
 */
export const tracePackages = (root, main, { arch, leavesOut = [] }) => {
  const { ownPackages, externals } = traceOwn(root, main, leavesOut);
  return { own: ownPackages, others: closeOver(root, externals, arch, leavesOut) };
};
