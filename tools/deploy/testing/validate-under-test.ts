import { expect } from '@jest/globals';
import { execFile } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder, projectRoot } from '@antiphon/bootstrap/project';
import { findOnPath } from '@antiphon/bootstrap/engines/probe';
import { hasValidators } from '../validate/validator-tools.mjs';

const VALIDATE = join(projectRoot, 'tools/deploy/validate.mjs');

/** Timeout of the first run, which fetches and builds Go and Python modules. */
export const UNTIL_BUILT_MS = 900_000;

interface Outcome {
  readonly code: number;
  readonly output: string;
}

/** Runs `npm run validate:deploy` with these arguments, to its end. */
export const validate = (args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<Outcome> =>
  new Promise((resolve) => {
    execFile(process.execPath, [VALIDATE, ...args], { env }, (error, stdout, stderr) => {
      const code = error === null ? 0 : Number(error.code);
      resolve({ code, output: `${stdout}${stderr}` });
    });
  });

/** False skips the rest on a machine without Go or Python. CI never skips it. */
export const canValidate =
  process.env['CI'] === 'true' ||
  hasValidators(cacheFolder(process.env)) ||
  (findOnPath('go') !== null && findOnPath('python3') !== null);

/** A mistake to plant (`from` becomes `to` in the file at `path`), and the expected message. */
export type Mistake = readonly [
  what: string,
  path: string,
  from: string | RegExp,
  to: string,
  expected: RegExp,
];

/** Copies all deployment files into the folder `root`, and replaces existing ones. */
export const copyDeployment = (root: string): void => {
  for (const path of ['k8s', 'deploy', 'docker-compose.yml'])
    cpSync(join(projectRoot, path), join(root, path), { recursive: true, force: true });
};

/** Changes one place in a copied file, which must contain the text. */
export const plant = (root: string, [, path, from, to]: Mistake): void => {
  const before = readFileSync(join(root, path), 'utf8');
  const after = before.replace(from, to);
  expect(after).not.toBe(before);
  writeFileSync(join(root, path), after);
};
