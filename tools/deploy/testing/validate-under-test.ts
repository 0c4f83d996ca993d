import { expect } from '@jest/globals';
import { execFile } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder, projectRoot } from '@antiphon/bootstrap/project';
import { findOnPath } from '@antiphon/bootstrap/engines/probe';
import { hasValidators } from '../validate/validator-tools.mjs';

const VALIDATE = join(projectRoot, 'tools/deploy/validate.mjs');

/** Go and Python modules are fetched and built the first time: two to three minutes. */
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

/** On a machine without Go or Python the rest cannot be shown, and counts as skipped; in CI it must be. */
export const canValidate =
  process.env['CI'] === 'true' ||
  hasValidators(cacheFolder(process.env)) ||
  (findOnPath('go') !== null && findOnPath('python3') !== null);

/** A mistake to plant (`from` becomes `to` in the file at `path`), and what is said of it. */
export type Mistake = readonly [
  what: string,
  path: string,
  from: string | RegExp,
  to: string,
  expected: RegExp,
];

/** Copies all that deploys into the folder `root`, over what is there. */
export const copyDeployment = (root: string): void => {
  for (const path of ['k8s', 'deploy', 'docker-compose.yml'])
    cpSync(join(projectRoot, path), join(root, path), { recursive: true, force: true });
};

/** Changes one place of a file of the copy; the text must be there. */
export const plant = (root: string, [, path, from, to]: Mistake): void => {
  const before = readFileSync(join(root, path), 'utf8');
  const after = before.replace(from, to);
  expect(after).not.toBe(before);
  writeFileSync(join(root, path), after);
};
