import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { loadScenarios } from './scenario.js';

const scenario = (text: string): string => JSON.stringify({ version: 1, replies: [{ play: [{ text }] }] });
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'scenarios '));
  mkdirSync(join(folder, 'demos'));
  writeFileSync(join(folder, 'one.json'), scenario('one'));
  writeFileSync(join(folder, 'demos', 'a.json'), scenario('a'));
  writeFileSync(join(folder, 'broken.json'), '{"version":1}');
});
afterAll(() => rmSync(folder, { recursive: true }));

const load = (baseUrl: string) => loadScenarios(baseUrl, join(folder, 'antiphon.toml'));

describe('loadScenarios', () => {
  it('reads a file relative to the configuration or by an absolute URL', () => {
    expect(load('file:one.json')('any')?.replies[0]?.play).toEqual([{ text: 'one' }]);
    expect(load(pathToFileURL(join(folder, 'one.json')).href)('any')?.replies).toHaveLength(1);
  });

  it('selects the file of a folder by the name of the model', () => {
    expect(load('file:demos/')('a')?.replies[0]?.play).toEqual([{ text: 'a' }]);
    expect(load('file:demos/')('b')).toBeUndefined();
  });

  it('throws with the file and the place of the mistake', () => {
    expect(() => load('file:broken.json')).toThrow(/broken\.json is wrong: replies: /);
    expect(() => load('file:missing.json')).toThrow(/missing\.json cannot be read/);
    expect(() => load('file:missing/')).toThrow(/missing cannot be read/);
  });
});
