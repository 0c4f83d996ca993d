import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const ROOT = resolve(import.meta.dirname, '../..');
const FOLDER = join(ROOT, 'docs/recipes');
const recipes = readdirSync(FOLDER).filter((file) => file !== 'README.md');
const read = (file: string): string => readFileSync(join(FOLDER, file), 'utf8');

/** Returns the text below a heading of a recipe. */
const sectionOf = (text: string, heading: string): string => {
  const [, rest = ''] = text.split(`\n## ${heading}\n`);
  return rest.split('\n## ')[0] ?? '';
};

/** A file or folder of the repository, in backticks. */
const PATH = /`((?:apps|libs|tools|docs|prisma|deploy|examples)\/[\w./-]+|\.env\.example|CHANGELOG\.md)`/g;
const pathsIn = (text: string): string[] => [...text.matchAll(PATH)].map(([, path = '']) => path);
const commitsIn = (text: string): string[] => [...text.matchAll(/`([0-9a-f]{8})`/g)].map(([, id = '']) => id);

const isShallow =
  execFileSync('git', ['rev-parse', '--is-shallow-repository'], { cwd: ROOT, encoding: 'utf8' }).trim() ===
  'true';
const isCommit = (id: string): boolean =>
  spawnSync('git', ['cat-file', '-e', `${id}^{commit}`], { cwd: ROOT }).status === 0;

describe('the recipes', () => {
  it.each([...recipes, 'README.md'])('%s names only files that exist', (file) => {
    expect(pathsIn(read(file)).filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  it.each(recipes)('%s has files in order, an example commit, and a check for forgotten steps', (file) => {
    const text = read(file);
    expect(text).toMatch(/^# \S/);
    const steps = sectionOf(text, 'Files').match(/^\d+\. /gm) ?? [];
    expect(steps.length).toBeGreaterThanOrEqual(3);
    expect(pathsIn(sectionOf(text, 'Files')).length).toBeGreaterThanOrEqual(4);
    const commits = commitsIn(sectionOf(text, 'Example'));
    expect(commits.length).toBeGreaterThan(0);
    expect(isShallow ? [] : commits.filter((id) => !isCommit(id))).toEqual([]);
    expect(pathsIn(sectionOf(text, 'Checks')).length).toBeGreaterThan(0);
  });

  it('are all in the index, which CONTRIBUTING.md leads with', () => {
    const index = read('README.md');
    expect(recipes.filter((file) => !index.includes(`(${file})`))).toEqual([]);
    const contributing = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8');
    expect(contributing.match(/^## .*$/m)?.[0]).toBe('## Recipes');
    expect(recipes.filter((file) => !contributing.includes(`(docs/recipes/${file})`))).toEqual([]);
  });
});
