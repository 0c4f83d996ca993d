import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { librariesIn, withFolders } from './render-folders.mjs';

const ROOT = resolve(import.meta.dirname, '../..');
const architecture = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8');
const libraries = librariesIn(ROOT);

describe('the libraries of docs/architecture.md', () => {
  it('are those that `npm run generate:docs` finds on the disk, with their folders', () =>
    expect(architecture).toBe(withFolders(architecture, libraries)));

  it('each have a description in their package.json', () => {
    expect(libraries.length).toBeGreaterThan(30);
    expect(libraries.filter(({ description }) => description === '')).toEqual([]);
  });

  it('change with a folder', () => {
    const more = libraries.map((one, index) => (index === 0 ? { ...one, folders: '`another`' } : one));
    expect(withFolders(architecture, more)).not.toBe(architecture);
  });
});
