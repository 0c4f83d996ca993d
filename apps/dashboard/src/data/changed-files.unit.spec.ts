import { describe, expect, it } from '@jest/globals';
import { changedFiles } from './changed-files.js';

type Change = Parameters<typeof changedFiles>[0][number];

const SESSION = '0b5d6a3e-6f0c-4d65-9c1a-3f6f7f3f1a01';
const OTHER = '0b5d6a3e-6f0c-4d65-9c1a-3f6f7f3f1a02';
const change = (
  version: number,
  path: string,
  fields: Partial<Change> = {},
  sessionId = SESSION,
): Change => ({
  ...{ version, path, type: 'written', to: null, digest: 'b'.repeat(64), before: 'a'.repeat(64), size: 4 },
  cause: { actor: 'agent/main', sessionId },
  ...{ eventId: OTHER, eventPosition: version, at: '2026-11-28T00:00:00.000Z' },
  ...fields,
});
const filesOf = (...changes: readonly Change[]) =>
  changedFiles(changes.toReversed(), SESSION).map(({ path, before, after, isShared }) => ({
    ...{ path, before, after, isShared },
  }));

describe('the files that a session has changed', () => {
  it('are compared from before its first change to after its last, the newest first', () => {
    const files = filesOf(change(3, 'a.md'), change(4, 'new.md', { before: null }), change(6, 'a.md'));
    expect(files).toEqual([
      { path: 'a.md', before: { path: 'a.md', at: 2 }, after: { path: 'a.md', at: 6 }, isShared: false },
      { path: 'new.md', before: null, after: { path: 'new.md', at: 4 }, isShared: false },
    ]);
  });

  it('stay one file through moves, of others too, and have nothing after a removal', () => {
    const files = filesOf(
      change(3, 'a.md'),
      change(4, 'a.md', { type: 'moved', to: 'b.md' }),
      change(5, 'b.md', { type: 'moved', to: 'c.md' }, OTHER),
      change(6, 'c.md', { type: 'deleted', digest: null }),
    );
    expect(files).toEqual([{ path: 'c.md', before: { path: 'a.md', at: 2 }, after: null, isShared: true }]);
  });

  it('are shared only if others changed them in between, and are none of others', () => {
    const files = filesOf(
      change(2, 'theirs.md', {}, OTHER),
      change(3, 'a.md'),
      change(4, 'a.md', {}, OTHER),
      change(5, 'b.md'),
      change(6, 'b.md', {}, OTHER),
      change(7, 'b.md'),
    );
    expect(files.map(({ path, isShared }) => [path, isShared])).toEqual([
      ['b.md', true],
      ['a.md', false],
    ]);
  });
});
