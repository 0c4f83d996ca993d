import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/*
 * Prints how many product files a plain turn passes through. The list is that of the nightly spec
 * `turn-files`, which traces the functions that a turn calls in all five services. Names the small
 * files of the list with one importer, since each could join it.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LIST = 'tools/lint/turn-files.txt';
const GOAL = 75;
/** Without comments and blank lines. */
const SMALL = 40;

/** Returns the area of a file, such as `libs/platform/event-store` or `libs/gateway`. */
const areaOf = (file) => {
  const parts = file.split('/');
  return parts.slice(0, parts[1] === 'platform' ? 3 : 2).join('/');
};

const linesOfCode = (text) =>
  text.split('\n').filter((line) => line.trim() !== '' && !/^\s*(\/\/|\/?\*)/.test(line)).length;

/** Returns the importers of each file of a folder, from relative imports of product files. */
const readImporters = (root) => {
  const importers = new Map();
  const files = globSync('{libs,apps}/**/*.ts', {
    cwd: root,
    exclude: (path) => /(^|\/)(node_modules|dist|testing|dashboard)$|\.(spec|d)\.ts$/.test(path),
  });
  for (const file of files)
    for (const [, name] of readFileSync(join(root, file), 'utf8').matchAll(/from '(\.{1,2}\/[^']+)\.js'/g)) {
      const target = `${resolve(root, dirname(file), name)}.ts`;
      importers.set(target, new Set(importers.get(target)).add(file));
    }
  return importers;
};

/**
 * Returns the files of a turn, those that are gone, their number by area, and the small ones with
 * their only importer.
 */
export const readTurnFiles = (root) => {
  const listed = readFileSync(join(root, LIST), 'utf8').trim().split('\n');
  const files = listed.filter((file) => existsSync(join(root, file)));
  const areas = new Map();
  for (const file of files) areas.set(areaOf(file), (areas.get(areaOf(file)) ?? 0) + 1);
  const importers = readImporters(root);
  const joinable = files.flatMap((file) => {
    const [only, ...more] = importers.get(join(root, file)) ?? [];
    const isSmall = linesOfCode(readFileSync(join(root, file), 'utf8')) < SMALL;
    const isOwn = only !== undefined && more.length === 0 && !only.endsWith('/index.ts');
    return isOwn && isSmall ? [{ file, into: only }] : [];
  });
  return { files, gone: listed.filter((file) => !files.includes(file)), areas: [...areas], joinable };
};

/** Renders the count, with the areas and the files that could join another one. */
export const renderTurnFiles = ({ files, gone, areas, joinable }) => [
  `a turn without tools calls functions of ${files.length} product files (goal: ${GOAL}), listed in ${LIST}`,
  ...areas.sort((a, b) => b[1] - a[1]).map(([area, count]) => `  ${String(count).padStart(3)} ${area}`),
  ...joinable.map(({ file, into }) => `  could join its only importer: ${file} into ${into}`),
  ...(gone.length === 0 ? [] : [`  ${gone.length} listed files are gone: run npm run trace:turn`]),
];

if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const line of renderTurnFiles(readTurnFiles(ROOT))) console.log(line);
