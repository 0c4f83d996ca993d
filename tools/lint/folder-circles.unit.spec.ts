import { describe, expect, it } from '@jest/globals';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findCircularImports, readFolderImports } from '@antiphon/testing';
import type { FolderImport } from '@antiphon/testing';
import { CONTEXTS } from './contexts.mjs';
import { readProjects } from './projects.mjs';

const ROOT = join(import.meta.dirname, '../..');
const NO_PRODUCT = ['dist', 'node_modules', 'testing', 'fixtures', 'histories'];

const isOfService = (type: string): boolean => type === 'feature' || type === 'domain';

const projects = readProjects(ROOT);
const contexts = projects.filter(({ root, scope = '' }) => root.startsWith('libs/') && scope in CONTEXTS);
const DASHBOARD = 'apps/dashboard/src';
/** All contexts with their domains, of every service, and the dashboard. */
const libraries = [
  ...contexts.map(({ root }) => root),
  ...projects
    .filter(({ scope = '', type }) => isOfService(type) && !(scope in CONTEXTS))
    .map(({ root }) => root),
  DASHBOARD,
];

/** Returns the imports between contexts from the product files of all their projects. */
const readContextImports = (): FolderImport[] =>
  contexts.flatMap(({ root, scope: from = '' }) =>
    globSync(`${root}/**/*.ts`, { cwd: ROOT })
      .filter((file) => !/\.(spec|d|examples|simulation)\.ts$|\/(dist|testing|node_modules)\//.test(file))
      .flatMap((file) =>
        [...readFileSync(join(ROOT, file), 'utf8').matchAll(/(?:from|import)\s*\(?\s*'(@antiphon\/[^/']+)/g)]
          .map(([, name]) => contexts.find((context) => context.name === name)?.scope)
          .filter((to) => to !== undefined && to !== from)
          .map((to = '') => ({ from, to, files: `${file} imports ${to}` })),
      ),
  );

describe('the folders of a library', () => {
  it.each(libraries)('%s import each other without a circle', (root) => {
    const imports = readFolderImports(join(ROOT, root));
    expect(findCircularImports(imports)).toEqual([]);
  });

  it('are those of every service and of the dashboard', () => {
    const services = ['agents', 'audit', 'conversation', 'files', 'gateway', 'memory', 'metering'];
    const features = [...services, 'native-tools', 'orchestration', 'providers', 'sandbox'];
    expect(libraries).toEqual(expect.arrayContaining(features.map((name) => `libs/${name}/features`)));
    expect(libraries).toContain(DASHBOARD);
  });

  it('of the dashboard are read with their components', () => {
    const pairs = readFolderImports(join(ROOT, DASHBOARD)).map(({ from, to }) => `${from} ${to}`);
    expect(pairs).toEqual(expect.arrayContaining(['app ui', 'ui data', 'pages ui', 'main.tsx app']));
  });

  it.each(contexts.map(({ root }) => root))('%s are all read from the disk', (root) => {
    const files = globSync('*/**/*.ts', { cwd: join(ROOT, root) });
    const folders = new Set(files.map((file) => file.split('/')[0] ?? ''));
    const known = new Set(readFolderImports(join(ROOT, root)).flatMap(({ from, to }) => [from, to]));
    expect([...folders].filter((name) => !NO_PRODUCT.includes(name) && !known.has(name))).toEqual([]);
  });
});

describe('the contexts of the agent service', () => {
  const imports = readContextImports();

  it('import each other without a circle', () => expect(findCircularImports(imports)).toEqual([]));

  it('import exactly the contexts that their row of the table names', () => {
    const used = Object.keys(CONTEXTS).map((scope) => [
      scope,
      [...new Set(imports.filter(({ from }) => from === scope).map(({ to }) => to))].sort(),
    ]);
    const allowed = Object.entries(CONTEXTS).map(([scope, names]) => [scope, [...names].sort()]);
    expect(used).toEqual(allowed);
  });
});
