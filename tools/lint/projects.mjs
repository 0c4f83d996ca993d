import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';

/**
 * The packages of the workspace with their Nx tags, read from each package.json.
 * @typedef {{ name: string, root: string, type: string, scope: string | undefined }} Project
 */

const tagOf = (tags, prefix) => tags.find((tag) => tag.startsWith(`${prefix}:`))?.slice(prefix.length + 1);

/** @param {string} workspace absolute path @returns {Project[]} */
export const readProjects = (workspace) => {
  const { workspaces } = JSON.parse(readFileSync(join(workspace, 'package.json'), 'utf8'));
  const manifests = workspaces.flatMap((pattern) => globSync(`${pattern}/package.json`, { cwd: workspace }));
  return manifests.map((manifest) => {
    const { name, nx } = JSON.parse(readFileSync(join(workspace, manifest), 'utf8'));
    const tags = nx?.tags ?? [];
    return { name, root: dirname(manifest), type: tagOf(tags, 'type'), scope: tagOf(tags, 'scope') };
  });
};

/** The project that a file belongs to. @param {Project[]} projects */
export const projectOf = (projects, workspace, file) => {
  const path = relative(workspace, file).split(sep).join('/');
  return projects.find(({ root }) => path === root || path.startsWith(`${root}/`));
};

/** True when a relative import leaves the folder of its package. */
export const leavesPackage = (workspace, project, file, source) => {
  const target = resolve(dirname(file), source);
  return relative(resolve(workspace, project.root), target).startsWith('..');
};
