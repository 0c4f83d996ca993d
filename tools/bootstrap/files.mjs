import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a folder and its parents. Node's own recursion never ends where the file system makes no
 * folders, such as in /proc.
 * @type {(path: string, mode?: number) => void}
 */
export const makeFolders = (path, mode = 0o777) => {
  const missing = [];
  for (let at = path; !fs.existsSync(at); at = dirname(at)) missing.unshift(at);
  for (const folder of missing)
    try {
      fs.mkdirSync(folder, { mode });
    } catch (error) {
      // Another process may have made it since.
      if (error.code !== 'EEXIST' || !fs.existsSync(folder)) throw error;
    }
  // Fails for a file in place of the folder, as Node's recursion does.
  if (!fs.statSync(path).isDirectory()) fs.mkdirSync(path);
};

/** Creates a folder and its parents, and sets exactly this mode despite the umask. */
export const makeDir = (/** @type {string} */ path, mode = 0o700) => {
  makeFolders(path, mode);
  fs.chmodSync(path, mode);
};

/**
 * Replaces a file atomically. Readers see the old text or the new one, also after a kill. `flush`
 * set to false skips the fsync. That suits files that are worthless after a power failure.
 * @type {import('./types.js').WriteText<string>}
 */
export const writeFileAtomic = (path, text, mode = 0o600, { flush = true } = {}) => {
  const temporary = `${path}.${process.pid}.${randomBytes(4).toString('hex')}.tmp`;
  makeFolders(dirname(path));
  try {
    fs.writeFileSync(temporary, text, { flag: 'wx', mode, flush });
    fs.renameSync(temporary, path);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw error;
  }
};

/** @type {import('./types.js').WriteText<unknown>} */
export const writeJsonAtomic = (path, value, mode, options) =>
  writeFileAtomic(path, `${JSON.stringify(value, null, 2)}\n`, mode, options);

/**
 * Returns the parsed file, or null where it is missing. Throws for text that is not JSON.
 * @type {(path: string) => any}
 */
export const readJson = (path) => {
  try {
    return JSON.parse(fs.readFileSync(path, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw error;
  }
};
