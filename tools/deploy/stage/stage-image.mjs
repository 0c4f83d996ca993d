import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, relative, sep } from 'node:path';
import { IMAGES, isStaged } from './contents.mjs';
import { tracePackages } from './trace-packages.mjs';

const slashes = (path) => path.split(sep).join('/');

/** Copies a package without its own `node_modules`, which is staged separately where needed. */
const copyPackage = (name, from, to, arch) => {
  const source = realpathSync(from);
  cpSync(source, to, {
    recursive: true,
    filter: (path) => {
      const inside = slashes(relative(source, path));
      if (inside === '') return true;
      if (inside.split('/').includes('node_modules')) return false;
      // Rules apply to files; an empty folder is removed below.
      if (statSync(path).isDirectory()) return true;
      return isStaged(name, inside, arch);
    },
  });
  removeEmptyFolders(to);
};

const removeEmptyFolders = (folder) => {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    const path = join(folder, entry.name);
    removeEmptyFolders(path);
    if (readdirSync(path).length === 0) rmSync(path, { recursive: true });
  }
};

/** Returns true for a package of plain JavaScript, whose `dist` has only declarations. */
const isPlainJavaScript = ({ exports: table = {} }) =>
  Object.values(table).some(({ default: target }) => target?.endsWith('.mjs'));

/** Copies an own package: its manifest, and its compiled files or its plain JavaScript. */
const copyOwn = (from, to, arch) => {
  const source = realpathSync(from);
  mkdirSync(to, { recursive: true });
  cpSync(join(source, 'package.json'), join(to, 'package.json'));
  const manifest = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
  if (isPlainJavaScript(manifest)) copyPackage('', source, to, arch);
  else if (existsSync(join(source, 'dist'))) copyPackage('', join(source, 'dist'), join(to, 'dist'), arch);
};

const copyFiles = (root, files, target) => {
  for (const path of files) {
    if (!existsSync(join(root, path)))
      throw new Error(`${path} is missing. What to do: build the project first (npm run build:plugins)`);
    cpSync(join(root, path), join(target, path), {
      recursive: true,
      filter: (file) => !file.endsWith('.stamp'),
    });
  }
};

/** Returns the folder of a compiled program's package. */
const packageOf = (main) => main.split('/dist/')[0] ?? '';

/**
 * Writes the content of a service's image to `target`. It has the program, its production
 * dependencies for Linux on `arch`, its data files, `start.mjs` and `healthcheck.mjs`. Throws when
 * the project is not built or a dependency is not installed.
 */
export const stageImage = ({ root, name, target, arch }) => {
  const { main, files = [], resolves = [], leavesOut } = IMAGES[name];
  const { own, others } = tracePackages(root, main, { arch, leavesOut });
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  copyOwn(join(root, packageOf(main)), join(target, packageOf(main)), arch);
  for (const packageName of resolves) own.set(packageName, join(root, 'node_modules', packageName));
  for (const [packageName, folder] of own) copyOwn(folder, join(target, 'node_modules', packageName), arch);
  for (const [path, packageName] of others)
    copyPackage(packageName, join(root, path), join(target, path), arch);
  copyFiles(root, files, target);
  writeFileSync(join(target, 'start.mjs'), `await import('./${main}');\n`);
  writeFileSync(
    join(target, 'package.json'),
    `${JSON.stringify({ name: `antiphon-${name}`, private: true, type: 'module' })}\n`,
  );
  cpSync(join(root, 'deploy', 'healthcheck.mjs'), join(target, 'healthcheck.mjs'));
};
