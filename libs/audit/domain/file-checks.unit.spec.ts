import { describe, expect, it } from '@jest/globals';
import type { FileTreeEvent } from '@antiphon/contracts/agent';
import { placeIn } from './agent-checks/agent-examples.spec.js';
import { TIME, findingsOf, uuid } from './audit-examples.spec.js';
import { fileTreesFoldInOrder } from './file-checks.js';

const A = 'a'.repeat(64);
const B = 'b'.repeat(64);
const shared = { cause: { actor: 'local' }, at: TIME };
const event = (type: FileTreeEvent['type'], data: object): FileTreeEvent =>
  ({ type, schemaVersion: 1, data: { ...shared, size: 1, mode: 0o644, ...data } }) as FileTreeEvent;
const written = (path: string, digest: string, before: string | null, data: object = {}): FileTreeEvent =>
  event('FileWritten', { path, digest, before, ...data });
const moved = (path: string, to: string, digest = A): FileTreeEvent =>
  event('FileMoved', { path, to, digest });
const deleted = (path: string, digest = A): FileTreeEvent => event('FileDeleted', { path, digest });
const restored = (path: string, digest: string, before: string | null): FileTreeEvent =>
  event('FileRestored', { path, digest, before, from: 1 });
const outside = (path: string, digest: string | null, before: string | null): FileTreeEvent =>
  event('FileChangedOutside', { path, digest, before });
const forked = (): FileTreeEvent => event('FileTreeForked', { base: uuid(1), version: 3 });

const findings = (...events: readonly FileTreeEvent[]): string[] =>
  findingsOf(
    fileTreesFoldInOrder,
    placeIn(events.map((content) => [`file-tree-${uuid(9)}`, content] as const)),
  );

/** A history without a fault: each altered one below differs in one fact. */
const CLEAN = [
  written('a', A, null),
  written('a', B, A),
  moved('a', 'd/b', B),
  deleted('d/b', B),
  restored('a', A, null),
  outside('a', B, A),
  outside('a', null, B),
];

describe('file-trees-fold-in-order', () => {
  it('accepts writes, moves, deletions, restores and changes from outside', () =>
    expect(findings(...CLEAN)).toEqual([]));

  it('accepts a fork that changes files of its base', () =>
    expect(findings(forked(), written('x', B, A), moved('y', 'z'), deleted('w'))).toEqual([]));

  it.each<[string, number, FileTreeEvent, string]>([
    [
      'other bytes before a write',
      1,
      written('a', B, B),
      'violation 2 FileWritten of a replaces bbbbbbbbbbbb, which was aaaaaaaaaaaa',
    ],
    [
      'a new file where one was',
      1,
      written('a', B, null),
      'violation 2 FileWritten of a replaces no file, which was aaaaaaaaaaaa',
    ],
    [
      'a move of other bytes',
      2,
      moved('a', 'd/b', A),
      'violation 3 FileMoved of a names aaaaaaaaaaaa, which was bbbbbbbbbbbb',
    ],
    ['a move of no file', 2, moved('q', 'd/b', B), 'violation 3 FileMoved of q, which was not there'],
    [
      'a deletion of other bytes',
      3,
      deleted('d/b', A),
      'violation 4 FileDeleted of d/b names aaaaaaaaaaaa, which was bbbbbbbbbbbb',
    ],
    [
      'a restore of bytes that never were',
      4,
      restored('a', 'c'.repeat(64), null),
      'violation 5 a was restored to bytes that the tree never had',
    ],
    [
      'a size that differs',
      5,
      { ...outside('a', B, A), data: { ...outside('a', B, A).data, size: 2 } } as FileTreeEvent,
      'violation 6 a has 2 bytes under a digest of 1 bytes',
    ],
    [
      'a removal of no file',
      6,
      outside('a', null, null),
      'violation 7 FileChangedOutside of a replaces no file, which was bbbbbbbbbbbb',
    ],
    ['a late fork', 6, forked(), 'violation 7 the tree was forked after its first event'],
  ])('finds %s', (_, index, altered, finding) =>
    expect(findings(...CLEAN.slice(0, index), altered, ...CLEAN.slice(index + 1))).toContain(finding),
  );

  it.each([
    ['clashing names', 'A', 'A clashes with a'],
    ['a file below a file', 'a/b', 'a/b is below a, which is a file'],
    ['a path upwards', '../b', '"../b" is no path of a tree'],
    ['an absolute path', '/b', '"/b" is no path of a tree'],
    ['a path that is not in NFC', 'e\u0301', '"e\u0301" is no path of a tree'],
  ])('finds %s', (_, path, message) =>
    expect(findings(written('a', A, null), written(path, B, null))).toEqual([`violation 2 ${message}`]),
  );

  it('finds a move over another file', () =>
    expect(findings(written('a', A, null), written('b', B, null), moved('a', 'b'))).toEqual([
      'violation 3 a was moved over b',
    ]));
});
