import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { writeFileAtomic } from './files.mjs';
import { projectRoot } from './project.mjs';

/*
 * Adds the optional packages of other platforms to package-lock.json, by name and pinned version.
 * A registry mirror that serves one platform omits them, and then `npm ci` refuses the lock.
 * Run it after `npm install` against such a mirror. The entries have no checksum.
 */

const SYSTEMS = {
  darwin: 'darwin',
  win32: 'win32',
  freebsd: 'freebsd',
  openbsd: 'openbsd',
  netbsd: 'netbsd',
  sunos: 'sunos',
};
const MORE_SYSTEMS = { aix: 'aix', openharmony: 'openharmony', android: 'android', linux: 'linux' };
const PROCESSORS = ['arm64', 'x64', 'ia32', 'ppc64', 's390x', 'riscv64', 'loong64', 'mips64el', 'arm'];
const C_LIBRARIES = { gnu: 'glibc', musl: 'musl' };

const firstIn = (table, name) => Object.entries(table).find(([word]) => name.includes(word))?.[1];

const entryFor = (name, version, parent) => {
  const processor = PROCESSORS.find((word) => name.includes(word));
  const system = firstIn({ ...SYSTEMS, ...MORE_SYSTEMS }, name);
  const library = system === 'linux' ? firstIn(C_LIBRARIES, name) : undefined;
  return {
    version,
    ...(processor && { cpu: [processor] }),
    ...(parent.dev && { dev: true }),
    ...(library && { libc: [library] }),
    optional: true,
    ...(system && { os: [system] }),
  };
};

/** Returns true if the package at `from` resolves `name` in its node_modules or in one above it. */
const isResolvable = (packages, from, name) => {
  for (let path = from; ; path = path.slice(0, Math.max(0, path.lastIndexOf('/node_modules/')))) {
    if (packages[`${path === '' ? '' : `${path}/`}node_modules/${name}`] !== undefined) return true;
    if (path === '' || !path.includes('node_modules/')) return packages[`node_modules/${name}`] !== undefined;
  }
};

/** Returns the optional packages that the lock lacks, as `[path in the lock, entry]`. */
export const missingOptionals = ({ packages }) =>
  Object.entries(packages).flatMap(([path, parent]) =>
    Object.entries(parent.optionalDependencies ?? {})
      .filter(([name]) => !isResolvable(packages, path, name))
      .map(([name, version]) => [`node_modules/${name}`, entryFor(name, version, parent)]),
  );

export const completeLock = (lock) => {
  const all = { ...lock.packages, ...Object.fromEntries(missingOptionals(lock)) };
  return {
    ...lock,
    packages: Object.fromEntries(Object.entries(all).sort(([a], [b]) => a.localeCompare(b, 'en'))),
  };
};

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const file = join(projectRoot, 'package-lock.json');
  const lock = JSON.parse(readFileSync(file, 'utf8'));
  const missing = missingOptionals(lock);
  if (missing.length > 0) writeFileAtomic(file, `${JSON.stringify(completeLock(lock), null, 2)}\n`, 0o644);
  console.log(
    missing.length === 0 ? 'the lock is complete' : `added ${missing.map(([path]) => path).join(', ')}`,
  );
}
