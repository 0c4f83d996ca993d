import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const workspace = join(import.meta.dirname, '../..');
const CODE = /['"`]([A-Z]{3,}\.[A-Z][A-Z_]{2,})['"`]/g;
/** NATS's own API subjects look alike and are no codes of ours. */
const SUBJECTS = /^(DIRECT|DURABLE|MSG|STREAM|CONSUMER)\./;

describe('docs/errors.md', () => {
  it('lists every error code that the source throws', () => {
    const sources = globSync('{libs,apps,tools}/**/*.ts', {
      cwd: workspace,
      exclude: (path) => /(^|\/)(dist|node_modules|testing)$|\.spec\.ts$/.test(String(path)),
    });
    const texts = sources.map((path) => readFileSync(join(workspace, path), 'utf8'));
    const codes = new Set(texts.flatMap((text) => [...text.matchAll(CODE)].map((match) => match[1] ?? '')));
    const listed = readFileSync(join(workspace, 'docs/errors.md'), 'utf8');
    expect(codes.size).toBeGreaterThan(50);
    expect([...codes].filter((code) => !SUBJECTS.test(code) && !listed.includes(`\`${code}\``))).toEqual([]);
  });
});
