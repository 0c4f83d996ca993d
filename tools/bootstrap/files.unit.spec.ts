import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { makeDir, makeFolders } from './files.mjs';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'antiphon-files-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('makeFolders', () => {
  it('makes a folder with its parents, and again', () => {
    const path = join(folder, 'a/b/c');
    makeFolders(path);
    makeFolders(path);
    expect(statSync(path).isDirectory()).toBe(true);
  });

  it('sets the mode of makeDir', () => {
    makeDir(join(folder, 'own'), 0o700);
    expect(statSync(join(folder, 'own')).mode & 0o777).toBe(0o700);
  });

  it('fails where there is a file', () => {
    writeFileSync(join(folder, 'file'), '');
    expect(() => makeFolders(join(folder, 'file'))).toThrow(/EEXIST/);
    expect(() => makeFolders(join(folder, 'file/below'))).toThrow(/ENOTDIR/);
  });

  // Node's recursion does not end there: it takes a processor until it is killed.
  it('fails where the file system makes no folders', () => {
    expect(() => makeFolders('/proc/antiphon/cache')).toThrow(/^E[A-Z]+: .*\/proc/);
  });
});
