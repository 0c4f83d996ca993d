import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nameOf, problem } from './problem.mjs';

/** Minor versions of Kubernetes that the manifests are good for. */
export const KUBERNETES_VERSIONS = ['1.35', '1.36', '1.37'];

const FAILED = /^ERROR (\S+) (?:did not validate for resource \S+ against version \S+: )?(.*)$/gm;

const validate = (python, folder, files, version) => {
  const args = ['-m', 'kubernetes_validate', '--strict', '--no-warn', '-k', version, ...files];
  const run = spawnSync(python, args, { cwd: folder, encoding: 'utf8', maxBuffer: 16 * 1024 * 1024 });
  if (run.error !== undefined) throw run.error;
  return { failed: run.status !== 0, output: `${run.stdout}${run.stderr}` };
};

const readFailures = (overlay, names, version, output) =>
  [...output.matchAll(FAILED)].map(([, file, message]) =>
    problem(`${overlay}: ${names.get(file) ?? file}`, `Kubernetes ${version}: ${message}`),
  );

/** Validates each document against the schemas of Kubernetes; an unknown field is an error. */
export const checkSchemas = (python, overlay, documents) => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-manifests-'));
  const names = new Map();
  for (const [index, document] of documents.entries()) {
    const file = `${index}.json`;
    names.set(file, nameOf(document));
    writeFileSync(join(folder, file), JSON.stringify(document));
  }
  try {
    return KUBERNETES_VERSIONS.flatMap((version) => {
      const { failed, output } = validate(python, folder, [...names.keys()], version);
      const found = readFailures(overlay, names, version, output);
      // A run that fails in words that we do not know is a failure all the same.
      return failed && found.length === 0
        ? [problem(overlay, `Kubernetes ${version}: ${output.trim()}`)]
        : found;
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
