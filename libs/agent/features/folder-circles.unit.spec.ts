import { describe, expect, it } from '@jest/globals';
import { readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findCircularImports, readFolderImports } from '@antiphon/testing';

const ROOT = dirname(fileURLToPath(import.meta.url));
const NO_PRODUCT = ['dist', 'node_modules', 'testing'];

describe('the folders of agent/features', () => {
  const imports = readFolderImports(ROOT);

  it('are all read from the disk', () => {
    const known = new Set(imports.flatMap(({ from, to }) => [from, to]));
    const folders = readdirSync(ROOT, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const names = folders.map(({ name }) => name).filter((name) => !NO_PRODUCT.includes(name));
    expect(names.filter((name) => !known.has(name))).toEqual([]);
  });

  it('import each other without a circle', () => expect(findCircularImports(imports)).toEqual([]));
});
