import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nameMigration, writeMigration } from './new-migration.mjs';

const NOW = new Date('2026-11-26T22:30:05.123Z');

describe('a new migration', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'antiphon-migration-'));
    mkdirSync(join(folder, 'functions'));
    mkdirSync(join(folder, 'migrations/20261121000100_log'), { recursive: true });
    for (const name of ['first', 'second'])
      writeFileSync(join(folder, `functions/${name}.sql`), `-- ${name}\n`);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each([
    [['20261121000100_log'], '20261126223005_x'],
    [['20261121000100_log', '20261202000640_newest_facts', 'migration_lock.toml'], '20261202000650_x'],
  ])('sorts after %j', (existing, name) => expect(nameMigration(existing, 'x', NOW)).toBe(name));

  it('holds the text of the functions that it applies', () => {
    const file = writeMigration(folder, 'change_two', ['first', 'second'], NOW);
    expect(file).toBe(join(folder, 'migrations/20261126223005_change_two/migration.sql'));
    expect(readFileSync(file, 'utf8')).toBe('-- first\n\n-- second\n');
  });

  it.each([
    ['a function without a file', 'change_third', ['third'], /functions\/third\.sql/],
    ['a name with a path', '../change', [], /usage/],
    ['no name', undefined, [], /usage/],
  ])('is refused for %s', (_case, title, functions, message) =>
    expect(() => writeMigration(folder, title, functions, NOW)).toThrow(message),
  );
});
