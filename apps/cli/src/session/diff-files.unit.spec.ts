import { describe, expect, it } from '@jest/globals';
import { applyPatch } from 'diff';
import fc from 'fast-check';
import { unifiedDiff } from './diff-files.js';

const bytes = (text: string): Buffer => Buffer.from(text);
const diff = (before: string | null, after: string | null): string =>
  unifiedDiff('a.txt', before === null ? null : bytes(before), after === null ? null : bytes(after));

describe('the unified diff of two versions of a file', () => {
  it('has the changed lines with three lines around them, and the names of the file', () => {
    const lines = Array.from({ length: 12 }, (_, n) => `line ${n + 1}\n`);
    const changed = lines.with(5, 'other\n');
    expect(diff(lines.join(''), changed.join(''))).toBe(
      [
        ...['--- a/a.txt', '+++ b/a.txt', '@@ -3,7 +3,7 @@', ' line 3', ' line 4', ' line 5'],
        ...['-line 6', '+other', ' line 7', ' line 8', ' line 9', ''],
      ].join('\n'),
    );
  });

  it('gives the later version when it is applied to the earlier one', () => {
    const text = fc
      .array(fc.constantFrom('a\n', 'b\n', 'c\r\n', '\n', 'd', '-x\n', '@@ é\n'), { maxLength: 30 })
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, text, (before, after) => {
        const patch = diff(before, after);
        expect(patch === '' ? before : applyPatch(before, patch, { autoConvertLineEndings: false })).toBe(
          after,
        );
      }),
    );
  });

  it('names a created and a deleted file, also without content', () => {
    expect(diff(null, 'a\n')).toBe('--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,1 @@\n+a\n');
    expect(diff('a', null)).toBe(
      '--- a/a.txt\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n\\ No newline at end of file\n',
    );
    expect(diff(null, '')).toBe('--- /dev/null\n+++ b/a.txt\n');
  });

  it('is empty for equal bytes, and says only that binary files differ', () => {
    expect([diff('a', 'a'), diff('', '')]).toEqual(['', '']);
    const binary = unifiedDiff('p.png', Buffer.from([1, 0, 2]), Buffer.from([0xff, 0xfe]));
    expect(binary).toBe('Binary files a/p.png (3 bytes) and b/p.png (2 bytes) differ\n');
  });

  it('replaces all lines where the shortest difference takes too long', () => {
    const random = (salt: number) =>
      Array.from({ length: 5_000 }, (_, n) => `${(n * salt) % 7_919}\n`).join('');
    const [before, after] = [random(31), `${random(57)}end`];
    expect(applyPatch(before, unifiedDiff('a', bytes(before), bytes(after), 1))).toBe(after);
  });
});
