import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { SessionExport } from '@antiphon/contracts/log';
import { invalid } from '@antiphon/kernel';

const unreadable = (what: string, cause: unknown): Error =>
  invalid(
    'CLI.USAGE',
    `${what} is not an exported session: ${(cause as Error).message}. What to do: antiphon session export <session> --out FILE`,
    { cause },
  );

/** An exported session from its text: JSON lines (a header, then events), or one document. Throws `CLI.USAGE`. */
export const parseExport = (text: string, what: string): SessionExport => {
  try {
    const [first = '', ...lines] = text.trimEnd().split('\n');
    const header = JSON.parse(first) as { events?: unknown };
    return SessionExport.parse(
      header.events === undefined
        ? { ...header, events: lines.map((line) => JSON.parse(line) as unknown) }
        : header,
    );
  } catch (cause) {
    throw unreadable(what, cause);
  }
};

export const readExportFile = (cwd: string, file: string): SessionExport => {
  try {
    return parseExport(readFileSync(resolve(cwd, file), 'utf8'), file);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code?.startsWith('E') !== true) throw cause;
    throw invalid('CLI.USAGE', `${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
};
