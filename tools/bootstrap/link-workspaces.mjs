import { existsSync, globSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { projectRoot } from './project.mjs';

/*
 * Links workspace packages that `node_modules` lacks, as `npm install` does. A package that came
 * with a pull is built without an installation then.
 */

const { workspaces } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
for (const manifest of globSync(
  workspaces.map((pattern) => `${pattern}/package.json`),
  { cwd: projectRoot },
)) {
  const { name } = JSON.parse(readFileSync(join(projectRoot, manifest), 'utf8'));
  const link = join(projectRoot, 'node_modules', name);
  if (existsSync(link)) continue;
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(relative(dirname(link), join(projectRoot, dirname(manifest))), link, 'dir');
}
