import { globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { code, renderTable, withPart } from './markdown.mjs';

const NO_FOLDERS = ['dist', 'node_modules', 'testing', 'fixtures', 'generated'];

const foldersOf = (project) =>
  readdirSync(project, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !NO_FOLDERS.includes(entry.name))
    .map(({ name }) => code(name))
    .sort()
    .join(' ');

/** Returns the libraries with the description of their package.json, and their folders. */
export const librariesIn = (root) =>
  globSync('libs/{*,*/*}/package.json', { cwd: root })
    .map((file) => dirname(file))
    .sort()
    .map((path) => {
      const { description = '' } = JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8'));
      return { path, description, folders: foldersOf(join(root, path)) };
    });

/** Returns the text of docs/architecture.md with the table of libraries and their folders. */
export const withFolders = (architecture, libraries) =>
  withPart(
    architecture,
    'folders',
    renderTable(
      ['library', 'content', 'folders'],
      libraries.map(({ path, description, folders }) => [code(path), description, folders]),
    ),
  );
