import {
  closeSync,
  copyFileSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs';

export const MAX_LOG_BYTES = 16 * 1024 * 1024;

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/**
 * Keeps a log at most twice `maxBytes` large: what is there moves to `<path>.1`, and the file begins anew. Its writers
 * hold it open for appending, so it is emptied in place; a line written meanwhile may be lost.
 */
export const rotateLog = (path: string, maxBytes = MAX_LOG_BYTES): boolean => {
  if (sizeOf(path) <= maxBytes) return false;
  try {
    copyFileSync(path, `${path}.new`);
    renameSync(`${path}.new`, `${path}.1`);
  } catch (error) {
    // On a full disk, room matters more than old lines.
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    rmSync(`${path}.new`, { force: true });
  }
  truncateSync(path, 0);
  return true;
};

/** The last lines that were written after byte `from`. */
export const readTail = (path: string, from: number, maxLines = 15, maxBytes = 16_384): string => {
  const size = sizeOf(path);
  const start = Math.max(size < from ? 0 : from, size - maxBytes);
  const buffer = Buffer.alloc(Math.max(0, size - start));
  if (buffer.length === 0) return '';
  const file = openSync(path, 'r');
  try {
    const length = readSync(file, buffer, 0, buffer.length, start);
    return buffer.toString('utf8', 0, length).trim().split('\n').slice(-maxLines).join('\n');
  } finally {
    closeSync(file);
  }
};
