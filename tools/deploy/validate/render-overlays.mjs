import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { parseAllDocuments } from 'yaml';
import { problem } from './problem.mjs';

const MAX_OUTPUT = 64 * 1024 * 1024;

/** @returns {string[]} `k8s/overlays/<name>` of each folder with a kustomization */
export const findOverlays = (root) => {
  const parent = join(root, 'k8s', 'overlays');
  return readdirSync(parent)
    .filter((name) => existsSync(join(parent, name, 'kustomization.yaml')))
    .map((name) => `k8s/overlays/${name}`)
    .sort();
};

/** Renders an overlay as `kubectl apply -k` does. Returns its documents, or the problems. */
export const renderOverlay = (kustomize, root, overlay) => {
  const run = spawnSync(kustomize, ['build', overlay], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: MAX_OUTPUT,
  });
  if (run.error !== undefined) throw run.error;
  if (run.status !== 0) return { documents: [], problems: [problem(overlay, run.stderr.trim())] };
  const parsed = parseAllDocuments(run.stdout);
  const problems = parsed.flatMap(({ errors }) => errors.map(({ message }) => problem(overlay, message)));
  return { documents: parsed.map((document) => document.toJS()), problems };
};
