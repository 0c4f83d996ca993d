import { describe, expect, it } from '@jest/globals';
import { renderAttached } from './attached-files.js';

const file = (path: string, text: string | null) => ({ path, digest: 'd', size: 3, text });

describe('attached files in a prompt', () => {
  it('are absent without files, and named with their digests', () => {
    expect(renderAttached([], 1_000)).toBeNull();
    const text = renderAttached([file('a.md', 'low tide'), file('b.png', null)], 4_000);
    expect(text).toContain('--- a.md (3 bytes, sha256 d)\nlow tide');
    expect(text).toContain('--- b.png (3 bytes, sha256 d)\n[not text]');
  });

  it('share a quarter of the context', () => {
    const large = 'x'.repeat(100_000);
    const text = renderAttached([file('a', large), file('b', large)], 4_000) ?? '';
    expect(text.length).toBeLessThan(8_000);
    expect(text).toMatch(/100[,.]?000/);
  });
});
