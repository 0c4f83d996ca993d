import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';

/** Makes a folder (and those above it) and gives it exactly this mode, whatever the umask. */
export const makeDir = (path, mode = 0o700) => {
  mkdirSync(path, { recursive: true, mode });
  chmodSync(path, mode);
};

/**
 * All or nothing: a reader sees the old text or the new one, and a kill leaves no half of it. `flush: false` for what
 * is worth nothing after a power cut.
 */
export const writeFileAtomic = (path, text, mode = 0o600, { flush = true } = {}) => {
  const temporary = `${path}.${process.pid}.${randomBytes(4).toString('hex')}.tmp`;
  mkdirSync(dirname(path), { recursive: true });
  try {
    const file = openSync(temporary, 'wx', mode);
    try {
      writeFileSync(file, text);
      if (flush) fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
};

export const writeJsonAtomic = (path, value, mode = 0o600, options) =>
  writeFileAtomic(path, `${JSON.stringify(value, null, 2)}\n`, mode, options);

/** The parsed file, or null when there is none. Throws for text that is not JSON: these files are written atomically. */
export const readJson = (path) => {
  let text;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw error;
  }
  return JSON.parse(text);
};
