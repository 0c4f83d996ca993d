import { appendFileSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readTail, rotateLog } from './bounded-log.js';

describe('a log', () => {
  let folder: string;
  let path: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'antiphon-log-'));
    path = join(folder, 'a.log');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('is moved when it is too large, while its writer continues in the same file', () => {
    const writer = openSync(path, 'a');
    writeSync(writer, 'old line\n'.repeat(20));
    expect(rotateLog(path, 1_000)).toBe(false);
    expect(rotateLog(path, 100)).toBe(true);
    writeSync(writer, 'new line\n');
    expect(readFileSync(path, 'utf8')).toBe('new line\n');
    expect(readFileSync(`${path}.1`, 'utf8')).toBe('old line\n'.repeat(20));
  });

  it('is quoted from a start position', () => {
    expect(readTail(path, 0)).toBe('');
    appendFileSync(path, 'another process\n');
    const from = 'another process\n'.length;
    appendFileSync(path, Array.from({ length: 30 }, (_, i) => `line ${i}\n`).join(''));
    expect(readTail(path, from, 2)).toBe('line 28\nline 29');
    expect(readTail(path, from, 100)).not.toContain('another');
  });
});
