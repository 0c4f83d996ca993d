import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { projectRoot } from '@antiphon/bootstrap/project';

/** The clocks of a stack's processes, each of which may be told to go wrong. */
export interface WrongClocks {
  /** What the stack's processes need in their environment for it. */
  readonly env: Readonly<Record<string, string>>;
  /** From now on this process (e.g. `agent-1`) believes that it is so many ms later; negative: earlier. */
  set(process: string, offsetMs: number): void;
  close(): void;
}

/** Clocks that are right until somebody sets them. */
export const createWrongClocks = (): WrongClocks => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-clocks-'));
  const program = pathToFileURL(join(projectRoot, 'libs/testing/faults/skewed-clock.mjs'));
  program.search = encodeURIComponent(folder);
  return {
    env: { NODE_OPTIONS: `--import=${program.href}` },
    set: (process, offsetMs) => {
      const path = join(folder, process);
      writeFileSync(`${path}.next`, String(offsetMs));
      renameSync(`${path}.next`, path);
    },
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
};
