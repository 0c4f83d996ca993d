import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';

const HERE = dirname(fileURLToPath(import.meta.url));
const UI = join(HERE, '../../ui');
const readAll = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.tsx'))
    .map((name) => readFileSync(join(folder, name), 'utf8'));

describe('the page of states', () => {
  it('shows every component that pages share', () => {
    const shared = readAll(UI).flatMap((text) =>
      [...text.matchAll(/^export const ([A-Z][a-z]\w*)\b/gm)].map(([, name]) => name ?? ''),
    );
    const shown = readAll(HERE).join('\n');
    expect(shared.length).toBeGreaterThan(20);
    expect(shared.filter((name) => !new RegExp(`<${name}\\b`).test(shown))).toEqual([]);
  });
});
