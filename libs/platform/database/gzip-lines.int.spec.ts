import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { appendFileSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type LineBounds, readGzipLines } from './gzip-lines.js';

const MIB = 2 ** 20;
const BOUNDS: LineBounds = {
  ...{ pageRows: 100, pageChars: 8 * MIB, lineChars: 16 * MIB, lines: 1_000_000 },
  refuse: (reason) => new Error(`the file ${reason}`),
};

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'antiphon-lines-'));
  file = join(folder, 'lines.gz');
});
afterEach(() => rmSync(folder, { recursive: true }));

const read = async (bounds: Partial<LineBounds> = {}): Promise<string[][]> => {
  const pages: string[][] = [];
  for await (const page of readGzipLines(file, { ...BOUNDS, ...bounds })) pages.push(page);
  return pages;
};

/** Writes 10 GiB of a text as 10 MiB: members of a gzip file follow each other. */
const writeBomb = (text: string): void => {
  const member = gzipSync(text.repeat((64 * MIB) / text.length));
  writeFileSync(file, '');
  for (let at = 0; at < 160; at++) appendFileSync(file, member);
  expect(statSync(file).size).toBeLessThan(60 * MIB);
};

/** Returns the error of a read, and by how much the memory of the process grew during it, MiB. */
const failOf = async (bounds: Partial<LineBounds>) => {
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  let peak = before;
  const timer = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 5);
  const error = await (async () => {
    for await (const page of readGzipLines(file, { ...BOUNDS, ...bounds })) void page;
  })().then(
    () => null,
    (reason: Error) => reason.message,
  );
  clearInterval(timer);
  peak = Math.max(peak, process.memoryUsage().rss);
  return { error, grewMiB: (peak - before) / MIB };
};

describe('lines of a gzip file', () => {
  it('are those that line feeds end, also with other separators in them', async () => {
    const lines = ['a', '', 'Grüße\u2028\u2029 漢\r', '"\u0085"', 'x'.repeat(200_000), 'no end'];
    writeFileSync(file, gzipSync(lines.join('\n')));
    expect((await read()).flat()).toEqual(lines);
    writeFileSync(file, gzipSync('a\n'));
    expect(await read()).toEqual([['a']]);
    writeFileSync(file, gzipSync(''));
    expect(await read()).toEqual([]);
  });

  it('come in pages bounded in number and in characters', async () => {
    writeFileSync(file, gzipSync(`${'x\n'.repeat(250)}${`${'y'.repeat(1_000)}\n`.repeat(5)}`));
    const pages = await read({ pageRows: 100, pageChars: 2_000 });
    expect(pages.map((page) => page.length)).toEqual([100, 100, 52, 2, 1]);
  });

  // @shows review2-13-compressed-files
  it('are refused as one line of 10 GiB in a small file, without the memory for it', async () => {
    writeBomb('x');
    const { error, grewMiB } = await failOf({});
    expect(error).toBe(`the file has a line of over ${16 * MIB} characters`);
    expect(grewMiB).toBeLessThan(160);
  });

  it('are refused as 10 GiB of lines beyond the number or the bytes that the reader expects', async () => {
    writeBomb(`${'y'.repeat(1_023)}\n`);
    const many = await failOf({ lines: 10_000 });
    expect(many.error).toBe('the file has more than 10000 lines');
    const large = await failOf({ bytes: 20 * MIB });
    expect(large.error).toBe(`the file expands to more than ${20 * MIB} bytes`);
    expect(Math.max(many.grewMiB, large.grewMiB)).toBeLessThan(160);
  });

  it('end with the error of a file that is missing or is no gzip', async () => {
    await expect(read()).rejects.toMatchObject({ code: 'ENOENT' });
    writeFileSync(file, 'no gzip');
    await expect(read()).rejects.toMatchObject({ code: 'Z_DATA_ERROR' });
  });
});
