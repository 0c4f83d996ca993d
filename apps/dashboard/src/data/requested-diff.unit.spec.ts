import { describe, expect, it } from '@jest/globals';
import { requestedDiff } from './requested-diff.js';

describe('the change that a call asks for', () => {
  it('has the old and the new lines of an edit', () => {
    expect(requestedDiff('edit', { path: 'a.ts', old: 'one\ntwo', new: 'three' })).toBe(
      '--- a.ts\n+++ a.ts\n-one\n-two\n+three',
    );
  });

  it('has each edit of several, under its file', () => {
    const edits = [
      { path: 'a', old: '1', new: '2' },
      { path: 'a', old: '3', new: '' },
      { path: 'b', old: '5', new: '6' },
    ];
    expect(requestedDiff('edit', { edits })).toBe('--- a\n+++ a\n-1\n+2\n@@\n-3\n--- b\n+++ b\n-5\n+6');
  });

  it('has the whole text of a write', () => {
    expect(requestedDiff('write', { path: 'new.md', content: 'x\ny' })).toBe(
      '--- new.md\n+++ new.md\n+x\n+y',
    );
  });

  it('is none for other tools, and for an input that is not one', () => {
    expect(requestedDiff('echo', { path: 'a', old: 'b', new: 'c' })).toBeNull();
    expect(requestedDiff('edit', null)).toBeNull();
  });
});
