import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { projectRoot } from '@antiphon/bootstrap/project';

/** The clocks of a stack's processes, each of which a test can set wrong. */
export interface WrongClocks {
  /** Environment variables that the stack's processes need. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Moves the clock of a process, e.g. `agent-1`, by `offsetMs`; a negative value moves it back.
   */
  set(process: string, offsetMs: number): void;
  close(): void;
}

/** Creates clocks that are right until `set` is called. */
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
