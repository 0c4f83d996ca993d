import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { settingTables } from '@antiphon/config';
import { withSettings } from './render-settings.mjs';

const ROOT = resolve(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

describe('the documentation of settings', () => {
  const contract = read('docs/contract.md');

  it('equals the tables that `npm run generate:docs` writes from the schema', () =>
    expect(contract).toBe(withSettings(contract, settingTables())));

  it('has a row with bounds, unit and default for a number', () =>
    expect(contract.replaceAll(/ +/g, ' ')).toContain(
      '| `body_timeout_s` | seconds for a whole request to arrive | an integer from 1 to 3600 | s | `30` |',
    ));

  it('shows another default once the schema has one', () => {
    const changed = settingTables().map(({ name, rows }) => ({
      name,
      rows: rows.map((row) => (row.key === 'max_hops' ? { ...row, otherwise: '9' } : row)),
    }));
    expect(withSettings(contract, changed)).not.toBe(contract);
  });
});

it('examples/antiphon.toml has every key of the schema below its table', () => {
  const tables = new Map<string, Set<string>>();
  let keys = new Set<string>();
  for (const line of read('examples/antiphon.toml').split('\n')) {
    const [, table] = /^#?(\[\[?[a-z._]+\]\]?)$/.exec(line) ?? [];
    if (table !== undefined) tables.set(table, (keys = tables.get(table) ?? new Set()));
    const [, key] = /^#?([a-z][a-z_0-9]*) = /.exec(line) ?? [];
    if (key !== undefined) keys.add(key);
  }
  const missing = settingTables().flatMap(({ name, rows }) =>
    rows.filter(({ key }) => !tables.get(name)?.has(key)).map(({ key }) => `${name} ${key}`),
  );
  expect(missing).toEqual([]);
});

it('the recipe of a setting has at most three files that are edited by hand', () => {
  const [, files = ''] = read('docs/recipes/add-a-setting.md').split('\n## Files\n');
  const steps = (files.split('\n## ')[0] ?? '').match(/^\d+\. /gm) ?? [];
  expect(steps.length).toBeGreaterThan(0);
  expect(steps.length).toBeLessThanOrEqual(3);
});
