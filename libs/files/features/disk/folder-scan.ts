import type { FileContent } from '@antiphon/files-domain';
import { isAppError } from '@antiphon/kernel';
import { digestOfBytes } from './safe-folder.js';
import type { SafeFolder } from './safe-folder.js';

/** Age of a change up to which another one may have the same stamp, ms. */
const SETTLE_MS = 100;
const EXECUTABLE = 0o100;

export interface ScannedFolder {
  readonly disk: ReadonlyMap<string, FileContent>;
  readonly refused: ReadonlySet<string>;
}

interface KnownFile {
  readonly stamp: string;
  readonly digest: string;
}

/** Returns the mode that a tree stores for a file of the disk. */
export const modeOf = (mode: number): 0o644 | 0o755 => ((mode & EXECUTABLE) === 0 ? 0o644 : 0o755);

/** Lists a folder with digests. Files whose stamp did not change are not read again. */
export class FolderScan {
  private known = new Map<string, KnownFile>();

  constructor(
    private readonly folder: SafeFolder,
    private readonly maxFileBytes: number,
  ) {}

  async scan(): Promise<ScannedFolder> {
    const listing = await this.folder.list();
    const refused = new Set(listing.refused);
    const disk = new Map<string, FileContent>();
    const known = new Map<string, KnownFile>();
    for (const { path, size, mode, stamp } of listing.files) {
      const old = this.known.get(path);
      if (old?.stamp === stamp) {
        known.set(path, old);
        disk.set(path, { digest: old.digest, size, mode: modeOf(mode) });
      } else if (size > this.maxFileBytes) refused.add(path);
      else await this.readFile(path, { disk, refused, known });
    }
    this.known = known;
    return { disk, refused };
  }

  private async readFile(
    path: string,
    found: { disk: Map<string, FileContent>; refused: Set<string>; known: Map<string, KnownFile> },
  ): Promise<void> {
    const startedAt = Date.now();
    try {
      const file = await this.folder.read(path);
      if (file === null) return;
      const digest = digestOfBytes(file.bytes);
      found.disk.set(path, { digest, size: file.bytes.length, mode: modeOf(file.mode) });
      if (file.changedAt < startedAt - SETTLE_MS) found.known.set(path, { stamp: file.stamp, digest });
    } catch (error) {
      if (!isAppError(error) && (error as NodeJS.ErrnoException).code !== 'EACCES') throw error;
      found.refused.add(path);
    }
  }
}
