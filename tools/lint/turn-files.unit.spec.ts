import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readTurnFiles, renderTurnFiles } from './turn-files.mjs';

let root: string;
const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'antiphon-turn-files-'));
  write('libs/a/features/turn.ts', "import { one } from './one.js';\nimport { both } from './both.js';\n");
  write('libs/a/features/one.ts', 'export const one = 1;\n');
  write('libs/a/features/both.ts', 'export const both = 2;\n');
  write('libs/platform/log/append.ts', "import { both } from '../../a/features/both.js';\n");
  const listed = ['a/features/both.ts', 'a/features/gone.ts', 'a/features/one.ts', 'a/features/turn.ts'];
  const names = [...listed, 'platform/log/append.ts'].map((name) => `libs/${name}\n`);
  write('tools/lint/turn-files.txt', names.join(''));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('the files of a turn', () => {
  it('are counted by area, and a small one with a single importer is named', () => {
    const lines = renderTurnFiles(readTurnFiles(root));
    expect(lines[0]).toContain('calls functions of 4 product files (goal: 75)');
    expect(lines.slice(1)).toEqual([
      '    3 libs/a',
      '    1 libs/platform/log',
      '  could join its only importer: libs/a/features/one.ts into libs/a/features/turn.ts',
      '  1 listed files are gone: run npm run trace:turn',
    ]);
  });
});
