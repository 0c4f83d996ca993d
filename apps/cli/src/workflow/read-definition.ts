import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { WORKFLOW_LIMITS } from '@antiphon/contracts/agent';
import { invalid } from '@antiphon/kernel';

const reasonOf = (error: unknown): string =>
  (error as { code?: string }).code === 'ENOENT' ? 'there is no such file' : (error as Error).message;

/** The text of a workflow's file. Throws `CLI.USAGE`. */
export const readDefinition = (cwd: string, file: string): string => {
  const path = resolve(cwd, file);
  try {
    const { size } = statSync(path);
    if (size > 4 * WORKFLOW_LIMITS.sourceLength) throw new Error('it is too large to be a workflow');
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw invalid('CLI.USAGE', `${file} cannot be read: ${reasonOf(error)}`);
  }
};
