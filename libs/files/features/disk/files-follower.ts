import { isAbsolute } from 'node:path';
import { invalid } from '@antiphon/kernel';
import type { FilesOnDisk } from './files-on-disk.js';

/** Reads `ANTIPHON_FILES_FOLDER`; null if it is not set. Throws `SERVICE.BAD_ENVIRONMENT`. */
export const readFilesFolder = (env: Readonly<Record<string, string | undefined>>): string | null => {
  const folder = env['ANTIPHON_FILES_FOLDER'] || null;
  if (folder !== null && !isAbsolute(folder))
    throw invalid(
      'SERVICE.BAD_ENVIRONMENT',
      'the service cannot start: ANTIPHON_FILES_FOLDER: must be an absolute path',
    );
  return folder;
};

/** Runs `FilesOnDisk` in a process, or nothing where no folder is set. */
export class FilesFollower {
  private readonly stopping = new AbortController();
  private running: Promise<void> = Promise.resolve();

  /** Null where no folder is set. */
  constructor(private readonly files: Pick<FilesOnDisk, 'run' | 'isLeader'> | null) {}

  start(): void {
    if (this.files) this.running = this.files.run(this.stopping.signal);
  }

  isLeader(): boolean {
    return this.files?.isLeader() ?? false;
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }
}
