import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { configProblems, loadConfig, renderConfigErrors } from '@antiphon/config';

interface Case {
  readonly id: string;
  readonly text?: string;
  readonly keys: readonly string[];
}

const cases = readFileSync(join(import.meta.dirname, 'fixtures', 'toml-corpus.jsonl'), 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line) as Case);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'antiphon-config-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Inputs that the fixture describes instead of spelling them out. */
const built: Record<string, () => string | Buffer> = {
  'toml-010-deep-array': () => `a = ${'['.repeat(20_000)}${']'.repeat(20_000)}`,
  'toml-011-big-file': () => Buffer.alloc(200 * 1024 * 1024, 'a = 1\n'),
  'toml-012-invalid-utf8': () =>
    Buffer.concat([Buffer.from('[gateway]\ntoken = "'), Buffer.from([0xff, 0xfe]), Buffer.from('"\n')]),
  'toml-017-plugin-symlink': () => {
    symlinkSync('/etc/shadow', join(folder, 'p.wasm'));
    return "[[plugins]]\nname='p'\npath='p.wasm'";
  },
};

const failure = (content: string | Buffer): unknown => {
  writeFileSync(join(folder, 'antiphon.toml'), content);
  try {
    loadConfig({ env: {}, cwd: folder, homeDir: folder });
  } catch (error) {
    return error;
  }
  throw new Error('the configuration was accepted');
};

describe('hostile configuration files', () => {
  it.each(cases)('$id is refused with its keys', ({ id, text, keys }) => {
    const error = failure(text ?? built[id]?.() ?? '');
    expect(error).toMatchObject({ kind: 'invalid', code: 'CONFIG.INVALID' });
    expect(configProblems(error).map(({ key }) => key)).toEqual(keys);
    expect(renderConfigErrors(error)).not.toContain('REAL');
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it('names both lines of a duplicate table', () =>
    expect(configProblems(failure('[gateway]\nport=1\n[gateway]\nport=2'))[0]).toMatchObject({
      line: 3,
      related: { line: 1, column: 2 },
    }));

  it('names the line that is not UTF-8', () =>
    expect(configProblems(failure(built['toml-012-invalid-utf8']?.() ?? ''))[0]).toMatchObject({ line: 2 }));
});
