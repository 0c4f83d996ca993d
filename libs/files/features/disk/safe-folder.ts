import { causedError } from '@antiphon/contracts/causes';
import { createHash, randomUUID } from 'node:crypto';
import { constants, linkSync, renameSync, unlinkSync } from 'node:fs';
import { link, mkdir, open, readdir, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { conflict, failpoint, rejected } from '@antiphon/kernel';
import type { AppError } from '@antiphon/kernel';
import {
  isMissing,
  isPlainFile,
  openFolder,
  pathIn,
  refuseLink,
  splitSafePath,
  statIn,
  using,
  walk,
} from './folder-walk.js';
import type { OpenFolder } from './folder-walk.js';
import { MODE_BITS, listFolder, stampOf } from './list-folder.js';
import type { FileStamp, FolderListing } from './list-folder.js';

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

export interface DiskFile extends FileStamp {
  readonly bytes: Buffer;
}

export const digestOfBytes = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

const READ_FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;

/** Reads a plain file of an open folder. Throws `FILE.NOT_PLAIN`, or ENOENT. */
const readIn = async (folder: OpenFolder, name: string, path: string): Promise<DiskFile> => {
  const handle = await open(pathIn(folder, name), READ_FLAGS).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ELOOP' || error.code === 'ENXIO' ? refuseLink(path) : error;
  });
  try {
    const stats = await handle.stat();
    if (!isPlainFile(stats)) throw refuseLink(path);
    return { ...stampOf(stats), bytes: await handle.readFile() };
  } finally {
    await handle.close();
  }
};

/** Returns the digest of a kept file, or null if it is not a regular file. */
const digestOfKept = async (file: string): Promise<string | null> => {
  const handle = await open(file, READ_FLAGS).catch(() => null);
  if (handle === null) return null;
  try {
    return (await handle.stat()).isFile() ? digestOfBytes(await handle.readFile()) : null;
  } finally {
    await handle.close();
  }
};

/**
 * Reads and writes files below a root and never follows a link, at no component of a path. Writes
 * are atomic. A file that changed since the caller read it is not overwritten.
 *
 * On other systems than Linux, a root that contains a link is refused when it is opened.
 */
export class SafeFolder {
  private constructor(
    private readonly root: OpenFolder,
    /** Folder of unfinished writes, on the same file system and outside of the root. */
    private readonly partial: OpenFolder,
  ) {}

  /** Opens a root, and creates it if it is missing. Throws `FILE.NOT_PLAIN`. */
  static async open(root: string, partial: string): Promise<SafeFolder> {
    await mkdir(root, { recursive: true, mode: 0o700 });
    await mkdir(partial, { recursive: true, mode: 0o700 });
    const folder = new SafeFolder(await openFolder(root), await openFolder(partial));
    if (process.platform === 'linux') return folder;
    const { refused } = await folder.list();
    if (refused.length === 0) return folder;
    await folder.close();
    throw refuseLink(refused[0] ?? root);
  }

  async close(): Promise<void> {
    await this.root.handle.close();
    await this.partial.handle.close();
  }

  /** Returns a file, or null if it is missing. Throws `FILE.INVALID_PATH`, `FILE.NOT_PLAIN`. */
  async read(path: string): Promise<DiskFile | null> {
    return this.inFolderOf(path, false, (folder, name) => readIn(folder, name, path));
  }

  /**
   * Writes a temporary file, syncs it and renames it. `expected` is the digest of the file that it
   * replaces, null for none. Throws `FILE.INVALID_PATH`, `FILE.NOT_PLAIN`, and
   * `FILE.DISK_CHANGED` if the file on the disk is another one, which then stays.
   */
  async write(path: string, bytes: Uint8Array, mode: number, expected: string | null): Promise<FileStamp> {
    const temporary = await this.stage(bytes, mode);
    try {
      return await this.inFolderOf(path, true, async (folder, name) => {
        if (expected === null) await this.create(path, folder, name, temporary);
        else await this.replace(path, folder, name, temporary, expected);
        await folder.handle.sync();
        await failpoint('files.disk.renamed');
        const stats = await statIn(folder, name);
        if (stats === null) throw this.changed(path);
        return stampOf(stats);
      }).then((written) => written ?? Promise.reject(this.changed(path)));
    } finally {
      await unlink(pathIn(this.partial, temporary)).catch(() => undefined);
    }
  }

  /**
   * Deletes a file and then its empty folders. Throws `FILE.DISK_CHANGED` if it is not the expected
   * one. A missing file is no error.
   */
  async remove(path: string, expected: string): Promise<void> {
    await this.inFolderOf(path, false, async (folder, name) => {
      const present = await readIn(folder, name, path);
      if (digestOfBytes(present.bytes) !== expected) throw this.changed(path);
      const kept = this.keep(folder, name);
      unlinkSync(pathIn(folder, name));
      if ((await digestOfKept(kept)) !== expected) throw this.putBack(path, folder, name, kept);
      await unlink(kept);
      await folder.handle.sync();
    });
    await this.removeEmptyFolders(splitSafePath(path).slice(0, -1));
  }

  /** Lists every file below the root in the order of paths. Empty folders are not listed. */
  list(): Promise<FolderListing> {
    return listFolder(this.root);
  }

  /**
   * Deletes what interrupted writes left. Files whose bytes `isKnown` does not know stay, and are
   * returned.
   */
  async clean(isKnown: (digest: string) => Promise<boolean>): Promise<string[]> {
    const left: string[] = [];
    for (const name of await readdir(pathIn(this.partial, '.'))) {
      const file = pathIn(this.partial, name);
      const stats = await statIn(this.partial, name);
      if (stats === null || stats.isDirectory()) continue;
      const isLastName = name.startsWith('old-') && isPlainFile(stats);
      const digest = isLastName ? await digestOfKept(file) : null;
      if (digest !== null && !(await isKnown(digest))) left.push(join(this.partial.path, name));
      else await unlink(file);
    }
    return left;
  }

  private async stage(bytes: Uint8Array, mode: number): Promise<string> {
    const name = `new-${randomUUID()}`;
    const flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
    const handle = await open(pathIn(this.partial, name), flags, 0o600);
    try {
      await handle.writeFile(bytes);
      await handle.chmod(mode & MODE_BITS);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await failpoint('files.disk.staged');
    return name;
  }

  /** Gives a new file its name. A name that exists is left as it is. */
  private async create(path: string, folder: OpenFolder, name: string, temporary: string): Promise<void> {
    await link(pathIn(this.partial, temporary), pathIn(folder, name)).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error;
        throw this.changed(path);
      },
    );
    await unlink(pathIn(this.partial, temporary));
  }

  /**
   * Exchanges a file. The old one keeps a second name until its bytes are compared again. A change
   * between the check and the rename is put back.
   */
  private async replace(
    path: string,
    folder: OpenFolder,
    name: string,
    temporary: string,
    expected: string,
  ): Promise<void> {
    const present = await readIn(folder, name, path).catch((error: unknown) => {
      throw isMissing(error) ? this.changed(path) : error;
    });
    if (digestOfBytes(present.bytes) !== expected) throw this.changed(path);
    const kept = this.keep(folder, name);
    renameSync(pathIn(this.partial, temporary), pathIn(folder, name));
    if ((await digestOfKept(kept)) !== expected) {
      renameSync(kept, pathIn(folder, name));
      throw this.changed(path);
    }
    await unlink(kept);
  }

  /** Gives a file a second name among the unfinished writes. No await lies between it and its use. */
  private keep(folder: OpenFolder, name: string): string {
    const kept = pathIn(this.partial, `old-${randomUUID()}`);
    linkSync(pathIn(folder, name), kept);
    return kept;
  }

  /** Gives a deleted file its name again, unless another file has it by now. */
  private putBack(path: string, folder: OpenFolder, name: string, kept: string): AppError {
    try {
      linkSync(kept, pathIn(folder, name));
      unlinkSync(kept);
    } catch {
      // It stays among the unfinished writes: `clean` reports it.
    }
    return this.changed(path);
  }

  private changed(path: string): AppError {
    return causedError(conflict, 'FILE.DISK_CHANGED', { kind: 'file_changed_on_disk', path }, { path });
  }

  private async removeEmptyFolders(parts: readonly string[]): Promise<void> {
    for (let depth = parts.length; depth > 0; depth--) {
      const parent = await walk(this.root, parts.slice(0, depth - 1), { create: false }).catch(() => null);
      if (parent === null) return;
      const isRemoved = await using(parent, (folder) =>
        rmdir(pathIn(folder, parts[depth - 1] ?? '')).then(
          () => true,
          () => false,
        ),
      );
      if (!isRemoved) return;
    }
  }

  /** Runs work with the open folder of a path; null if a part is missing. */
  private async inFolderOf<T>(
    path: string,
    create: boolean,
    work: (folder: OpenFolder, name: string) => Promise<T>,
  ): Promise<T | null> {
    const parts = splitSafePath(path);
    const name = parts.pop();
    if (name === undefined) throw causedError(rejected, 'FILE.INVALID_PATH', { kind: 'file_path_empty' });
    try {
      return await using(await walk(this.root, parts, { create }), (folder) => work(folder, name));
    } catch (error) {
      if (!create && isMissing(error)) return null;
      throw error;
    }
  }
}
