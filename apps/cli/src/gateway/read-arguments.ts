import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { MAX_EDITED_BYTES, MAX_EDITED_DEPTH } from '@antiphon/contracts/agent';
import type { EditedInput } from '@antiphon/contracts/agent';
import { findJsonExcess, invalid } from '@antiphon/kernel';

const STANDARD_INPUT = 0;

const readText = (cwd: string, source: string): string => {
  try {
    return readFileSync(source === '-' ? STANDARD_INPUT : resolve(cwd, source), 'utf8');
  } catch {
    throw invalid(
      'CLI.USAGE',
      `${source === '-' ? 'standard input' : source} cannot be read, and is no JSON`,
    );
  }
};

/** Returns arguments of a call, which are given as JSON, as a file, or as `-` for standard input. */
export const readArguments = (cwd: string, source: string): EditedInput => {
  const text = /^\s*[[{]/.test(source) ? source : readText(cwd, source);
  if (Buffer.byteLength(text) > MAX_EDITED_BYTES)
    throw invalid('CLI.USAGE', `the arguments have more than ${MAX_EDITED_BYTES} bytes`);
  const excess = findJsonExcess(text, { depth: MAX_EDITED_DEPTH });
  if (excess !== null) throw invalid('CLI.USAGE', `the JSON of the arguments ${excess}`);
  try {
    return JSON.parse(text) as EditedInput;
  } catch (error) {
    throw invalid('CLI.USAGE', `the arguments are no JSON: ${(error as Error).message}`);
  }
};
