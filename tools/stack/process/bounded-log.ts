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

/** Maximum size of one log, bytes. */
const MAX_LOG_BYTES = 16 * 1024 * 1024;

/** Returns the size of a file in bytes, 0 for a missing one. */
export const fileSize = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/**
 * Limits a log to twice `maxBytes`. Moves a larger log to `<path>.1` and empties the file in place,
 * because writers hold it open. A line that is written at that moment may be lost.
 */
export const rotateLog = (path: string, maxBytes = MAX_LOG_BYTES): boolean => {
  if (fileSize(path) <= maxBytes) return false;
  try {
    copyFileSync(path, `${path}.new`);
    renameSync(`${path}.new`, `${path}.1`);
  } catch (error) {
    // On a full disk, space matters more than old lines.
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    rmSync(`${path}.new`, { force: true });
  }
  truncateSync(path, 0);
  return true;
};

/** Returns the last lines that were written after byte `from`. */
export const readTail = (path: string, from: number, maxLines = 15, maxBytes = 16_384): string => {
  const size = fileSize(path);
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
