import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { invalid } from '@antiphon/kernel';

const MAX_SECRET_CHARS = 4_096;
const STANDARD_INPUT = 0;

/** Reads a secret from a file or from standard input. Arguments are visible to other processes. */
export const readSecret = (cwd: string, file: string | undefined): string => {
  if (file === undefined && process.stdin.isTTY)
    throw invalid(
      'CLI.USAGE',
      'the key is read from standard input: pipe it in, or name its file with --file',
    );
  let text: string;
  try {
    text = readFileSync(file === undefined ? STANDARD_INPUT : resolve(cwd, file), 'utf8').trim();
  } catch {
    throw invalid('CLI.USAGE', `${file ?? 'standard input'} cannot be read`);
  }
  if (text !== '' && text.length <= MAX_SECRET_CHARS && /^[\x21-\x7e]+$/.test(text)) return text;
  throw invalid('CLI.USAGE', 'this is no key: expected 1 to 4096 printable ASCII characters without spaces');
};
