import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { HTTP_ROUTES, SOCKET_METHODS } from '@antiphon/contracts/reference';
import { withReference } from './render-reference.mjs';

const ROOT = resolve(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

const contract = read('docs/contract.md');
const REFERENCE = { methods: SOCKET_METHODS, routes: HTTP_ROUTES };

/** Returns the text below a heading of the contract. */
const sectionOf = (heading: string): string => {
  const [, rest = ''] = contract.split(`\n## ${heading}`);
  return rest.split('\n## ')[0] ?? '';
};

describe('docs/contract.md', () => {
  it('equals the tables that `npm run generate:docs` writes from the reference', () =>
    expect(contract).toBe(withReference(contract, REFERENCE)));

  it('has a row with the required and the optional params of a method, its result and its right', () =>
    expect(contract.replaceAll(/ +/g, ' ')).toContain(
      '| `session.cancel` | Cancel a turn | `sessionId`, optional `turnId` | `cancelled status` | `sessions:write` |',
    ));

  it('shows another right once a route has one', () => {
    const [first, ...others] = HTTP_ROUTES;
    const routes = [{ ...first, access: 'keys:manage' }, ...others];
    expect(withReference(contract, { ...REFERENCE, routes })).not.toBe(contract);
  });

  it('names every key and table of the reference of settings', () => {
    const section = sectionOf('2. ');
    const settings = read('examples/antiphon.toml');
    const keys = [...settings.matchAll(/^#?([a-z][a-z_]*) = /gm)].map(([, key = '']) => key);
    const tables = [...settings.matchAll(/^#?(\[\[?[a-z._]+\]\]?)$/gm)].map(([, table = '']) => table);
    expect(keys.length).toBeGreaterThan(80);
    const words = new Set(section.match(/[a-z_0-9]+/g));
    expect(keys.filter((key) => !words.has(key))).toEqual([]);
    expect(tables.filter((table) => !section.includes(`\`${table}\``))).toEqual([]);
  });
});
