import { describe, expect, it } from '@jest/globals';
import type { FileTreeEvent } from '@antiphon/contracts/agent';
import { placeIn } from './agent-checks/agent-examples.spec.js';
import { findingsOf, uuid } from './audit-examples.spec.js';
import { fileTreesStayWithinQuotas } from './file-quotas.js';

const quotas = { maxFileBytes: 10, maxFiles: 2, maxBytes: 20, maxVersions: 6 };
let second = 0;
/** A change; each has an append of its own unless `at` says otherwise. */
const event = (type: FileTreeEvent['type'], data: object): FileTreeEvent =>
  ({
    ...{ type, schemaVersion: 1 },
    data: { cause: { actor: 'local' }, at: String(second++), digest: 'd', size: 1, mode: 0o644, ...data },
  }) as unknown as FileTreeEvent;
const written = (path: string, data: object = {}) => event('FileWritten', { path, before: null, ...data });
const findings = (...events: readonly FileTreeEvent[]): string[] =>
  findingsOf(
    fileTreesStayWithinQuotas,
    placeIn(events.map((content) => [`file-tree-${uuid(9)}`, content] as const)),
  );

describe('file-trees-stay-within-quotas', () => {
  it('accepts changes up to each quota', () =>
    expect(
      findings(
        ...[
          written('a', { quotas, size: 10 }),
          written('b', { size: 10 }),
          event('FileDeleted', { path: 'a' }),
        ],
        ...[event('FileMoved', { path: 'b', to: 'c' }), event('FileRestored', { path: 'a', from: 1 })],
        event('FileChangedOutside', { path: 'a', digest: null, size: 0 }),
      ),
    ).toEqual([]));

  it.each<[string, FileTreeEvent[], string]>([
    [
      'a file that is too large',
      [written('a', { quotas, size: 11 })],
      'a has 11 bytes; a file has at most 10',
    ],
    [
      'one file too many',
      [written('a', { quotas }), written('b'), written('c')],
      'the tree has 3 of maxFiles = 2',
    ],
    [
      'one byte too many',
      [written('a', { quotas, size: 10 }), written('a', { size: 10 }), written('a')],
      'the tree has 21 of maxBytes = 20',
    ],
    [
      'one version too many',
      [written('a', { quotas }), ...Array.from({ length: 6 }, () => written('a'))],
      'the tree has 7 of maxVersions = 6',
    ],
  ])('finds %s', (_, events, message) =>
    expect(findings(...events)).toEqual([`violation ${events.length} ${message}`]),
  );

  it('compares after all changes of an append', () => {
    const append = { at: 'one append' };
    expect(
      findings(
        ...[written('a', { quotas }), written('b')],
        ...[written('c', append), event('FileDeleted', { path: 'a', ...append })],
      ),
    ).toEqual([]);
  });

  it('allows a tree over a lowered quota to shrink, and not to grow', () => {
    const lower = { quotas: { ...quotas, maxFiles: 1 } };
    const two = [written('a', { quotas }), written('b')];
    expect(findings(...two, written('b', lower))).toEqual([]);
    expect(findings(...two, written('c', lower))).toEqual(['violation 3 the tree has 3 of maxFiles = 1']);
  });

  it('knows of a fork only the size of each file', () => {
    const forked = event('FileTreeForked', { base: uuid(1), version: 3 });
    const files = ['a', 'b', 'c'].map((path) => written(path, { quotas }));
    expect(findings(forked, ...files)).toEqual([]);
    expect(findings(forked, written('a', { quotas, size: 11 }))).toHaveLength(1);
  });
});
