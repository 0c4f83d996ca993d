import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { buildProject } from './build.mjs';
import { createProgress } from './progress.mjs';

/** Stands in for the compiler and for the Node that runs it: counts, and leaves an output. */
const FAKE_NODE = `#!/bin/sh
echo "$@" >> "${'$'}PWD/builds"
[ -e broken ] && { echo "libs/a/index.ts(1,1): error TS2304: Cannot find name 'x'."; exit 2; }
mkdir -p libs/a/dist && echo > libs/a/dist/.tsbuildinfo
`;

describe('buildProject', () => {
  let root: string;
  const write = (path: string, text: string, mode = 0o644): void => {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), text, { mode });
  };
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'antiphon build '));
    write(
      'package.json',
      JSON.stringify({ scripts: { 'build:plugins': 'mkdir -p plugins/dist; echo >> plugin-builds' } }),
    );
    write('package-lock.json', '{}');
    write('tsconfig.base.json', '{}');
    write('tsconfig.json', JSON.stringify({ references: [{ path: 'libs/a' }] }));
    write('libs/a/index.ts', 'export const a = 1;');
    write('node_modules/.bin/node', FAKE_NODE, 0o755);
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const build = () =>
    buildProject(
      { root, env: process.env },
      createProgress(() => undefined),
    );
  const count = (file: string): number =>
    existsSync(join(root, file)) ? readFileSync(join(root, file), 'utf8').split('\n').length - 1 : 0;
  const builds = (): number[] => [count('builds'), count('plugin-builds')];

  it('runs once, and again after a changed source, a new file or a missing output', async () => {
    await build();
    await build();
    expect(builds()).toEqual([1, 1]);
    write('libs/a/index.ts', 'export const a = 2;');
    await build();
    expect(builds()).toEqual([2, 2]);
    write('libs/a/more.ts', '');
    await build();
    rmSync(join(root, 'libs/a/dist'), { recursive: true });
    await build();
    expect(builds()).toEqual([4, 4]);
  });

  it('ignores touched files and build outputs', async () => {
    await build();
    write('libs/a/index.ts', 'export const a = 1;');
    write('libs/a/dist/index.js', '');
    write('libs/a/node_modules/b/index.ts', '');
    await build();
    expect(builds()).toEqual([1, 1]);
  });

  it('fails with the compiler’s output, and runs again the next time', async () => {
    write('broken', '');
    await expect(build()).rejects.toThrow(/the build failed: [\s\S]*error TS2304: Cannot find name 'x'/);
    rmSync(join(root, 'broken'));
    await build();
    expect(count('builds')).toBe(2);
  });
});
