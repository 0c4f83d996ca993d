import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import {
  DISK_FAILPOINTS,
  FAILPOINTS,
  FILE_FAILPOINTS,
  REMOTE_FAILPOINTS,
  RESTORE_FAILPOINTS,
  WORK_FAILPOINTS,
} from '@antiphon/kernel';
import { FAULT_CASES } from './fault-cases.js';

const ROOT = join(import.meta.dirname, '../../..');
const CALL = /\bfailpoint\(\s*'([^']+)'/g;
const isSource = (path: string): boolean =>
  path.endsWith('.ts') && !/\.spec\.ts$|(^|\/)(dist|node_modules|testing)\//.test(path);

const failpointsInSource = (): Set<string> => {
  const paths = ['libs', 'apps', 'tools'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter(isSource)
      .map((path) => join(ROOT, folder, path)),
  );
  return new Set(
    paths.flatMap((path) => [...readFileSync(path, 'utf8').matchAll(CALL)].map(([, name]) => name ?? '')),
  );
};

const sorted = (names: Iterable<string>): string[] => [...names].sort();

describe('the failpoint sweep', () => {
  // Points of a restore, of files, of lost work and of remote calls have specs of their own:
  // libs/platform/database/backup/restore.nightly.spec.ts, libs/files/features/trees.
  it('has a case for each failpoint of the source, and no other', () =>
    expect(
      sorted([
        ...FAULT_CASES.map(({ point }) => point),
        ...[
          ...RESTORE_FAILPOINTS,
          ...FILE_FAILPOINTS,
          ...DISK_FAILPOINTS,
          ...WORK_FAILPOINTS,
          ...REMOTE_FAILPOINTS,
        ],
      ]),
    ).toEqual(sorted(failpointsInSource())));

  it('lists the same failpoints as the kernel', () =>
    expect(sorted(FAILPOINTS)).toEqual(sorted(failpointsInSource())));
});
