import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';

/** An import between two folders of a library. A file at its root counts as a folder. */
export interface FolderImport {
  readonly from: string;
  readonly to: string;
  /** The importing file and the imported one. */
  readonly files: string;
}

const IMPORT = /\b(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)\.js'/g;
const NO_PRODUCT = new Set(['dist', 'node_modules', 'testing']);

const folderOf = (path: string): string => path.split(sep)[0] ?? '';

const isProduct = (path: string): boolean =>
  /(?<!\.spec|\.d)\.tsx?$/.test(path) && !NO_PRODUCT.has(folderOf(path));

/** Reads the imports between the folders of a library from its product files, types included. */
export const readFolderImports = (root: string): FolderImport[] =>
  readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter(isProduct)
    .flatMap((path) =>
      [...readFileSync(join(root, path), 'utf8').matchAll(IMPORT)].map(([, name = '']) => {
        const imported = `${relative(root, resolve(root, dirname(path), name))}.ts`;
        return { from: folderOf(path), to: folderOf(imported), files: `${path} imports ${imported}` };
      }),
    )
    .filter(({ from, to }) => from !== to && to !== '..');

/** Returns the folders that a folder imports, over any number of others. */
const reachableFrom = (folder: string, imports: readonly FolderImport[]): ReadonlySet<string> => {
  const reached = new Set<string>();
  const visit = (from: string): void => {
    for (const next of imports)
      if (next.from === from && !reached.has(next.to)) {
        reached.add(next.to);
        visit(next.to);
      }
  };
  visit(folder);
  return reached;
};

/** Returns each import that is part of a circle of folders, as its two files. */
export const findCircularImports = (imports: readonly FolderImport[]): string[] => {
  const reached = new Map(imports.map(({ to }) => [to, reachableFrom(to, imports)]));
  return imports.filter(({ from, to }) => reached.get(to)?.has(from)).map(({ files }) => files);
};
