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

  it('share half of the context', () => {
    const large = 'x'.repeat(100_000);
    const text = renderAttached([file('a', large), file('b', large)], 4_000) ?? '';
    expect(text.length).toBeLessThan(8_000);
    expect(text).toMatch(/100[,.]?000/);
  });

  const numbered = (count: number, line: (n: number) => string): string =>
    `${Array.from({ length: count }, (_, n) => line(n + 1)).join('\n')}\n`;

  // @shows chats-C13
  it('are whole where they fit, and are cut after a whole line where they do not', () => {
    const small = numbered(20, (n) => `line ${n}`);
    expect(renderAttached([file('a.md', small)], 4_000)).toContain(small);
    const text =
      renderAttached(
        [
          file(
            'a.md',
            numbered(2_000, (n) => `line ${n}`),
          ),
        ],
        4_000,
        true,
      ) ?? '';
    const [, shown] = /\[cut: lines 1 to (\d+) of 2000 lines, \d+ characters, is above\./.exec(text) ?? [];
    expect(text).toContain(`\nline ${shown}\n[cut:`);
    expect(text).not.toContain(`line ${Number(shown) + 1}\n`);
    expect(text).toContain(`call \`read\` with path "a.md" and from ${Number(shown) + 1}`);
  });

  it('say how much of a file was read where it is only the beginning', () => {
    const text = renderAttached([{ ...file('a.md', 'low\nhigh\n'), size: 9_000_000, isPart: true }], 4_000);
    expect(text).toContain('low\nhigh\n[cut: lines 1 to 2 of a file of 9000000 bytes, of which 9 characters');
  });

  it('name the tool `read` only to an agent that has it', () => {
    const large = file(
      'a.md',
      numbered(2_000, (n) => `line ${n}`),
    );
    expect(renderAttached([large], 4_000)).not.toContain('call `read`');
  });

  it.each([
    ['guide.md', (n: number) => (n % 50 === 0 ? `## Part ${n}` : `text ${n}`), '1000\t## Part 1000'],
    [
      'app.ts',
      (n: number) => (n % 50 === 0 ? `export const part${n} = (` : `  x(${n});`),
      '1000\texport const part1000 = (',
    ],
    ['app.py', (n: number) => (n % 50 === 0 ? `def part_${n}():` : `    x(${n})`), '1000\tdef part_1000():'],
    [
      'data.json',
      (n: number) => (n % 50 === 0 ? `  "part${n}": {` : `    "x": ${n},`),
      '1000\t  "part1000": {',
    ],
  ])('that are cut get an outline of the other lines: %s', (path, line, entry) => {
    const text = renderAttached([file(path, numbered(1_500, line))], 4_000) ?? '';
    expect(text).toContain('[outline of the other lines]');
    expect(text).toContain(`\n${entry}\n`);
    expect(text.length).toBeLessThan(8_000 * 0.25 * 3 + 1_000);
  });

  it('outline no line of a code block as a heading', () => {
    const lines = numbered(1_500, (n) =>
      n === 700 ? '```' : n === 701 ? '# a comment' : n === 702 ? '```' : 'text',
    );
    expect(renderAttached([file('a.md', lines)], 2_000)).not.toContain('# a comment');
  });
});
