import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, extname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

/** Media types of the files that a build writes. */
const MEDIA: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
};
const COMPRESSED: ReadonlySet<string> = new Set(['.png', '.woff2', '.ico']);
/** Names with a hash of the content, as the build gives them. */
const HASHED = /^\/assets\/.*-[\w-]{8}\.\w+$/;

export type Encoding = 'br' | 'gzip' | null;

/** A built file. */
export interface DashboardFile {
  readonly path: string;
  readonly media: string;
  readonly etag: string;
  /** True if its content never changes under this path. */
  readonly isImmutable: boolean;
  readonly bytes: Buffer;
  /** Returns the bytes in an encoding that the client accepts. */
  encoded(encoding: Encoding): Promise<Buffer>;
}

const compress = (bytes: Buffer, encoding: 'br' | 'gzip'): Promise<Buffer> =>
  encoding === 'gzip'
    ? promisify(gzip)(bytes, { level: 9 })
    : promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } });

const readBuilt = async (folder: string, file: string): Promise<DashboardFile> => {
  const bytes = await readFile(file);
  const path = `/${relative(folder, file)}`;
  const type = extname(path);
  const made = new Map<Encoding, Promise<Buffer>>([[null, Promise.resolve(bytes)]]);
  return {
    ...{ path, bytes },
    media: MEDIA[type] ?? 'application/octet-stream',
    etag: createHash('sha256').update(bytes).digest('base64url').slice(0, 22),
    isImmutable: HASHED.test(path),
    encoded: (encoding) => {
      if (encoding === null || COMPRESSED.has(type)) return Promise.resolve(bytes);
      const ready = made.get(encoding) ?? compress(bytes, encoding);
      made.set(encoding, ready);
      return ready;
    },
  };
};

/** Returns the regular files below a folder. Links are left out. */
const filesBelow = async (folder: string): Promise<string[]> => {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
};

/**
 * Reads the built dashboard. A path is only a key of the files that the build wrote, so that no
 * path reaches another file. A new build is read at the next request of the page.
 */
export class DashboardFiles {
  #files: ReadonlyMap<string, DashboardFile> = new Map();
  #version = '';
  #reading: Promise<void> | null = null;

  constructor(readonly folder: string) {}

  /** Returns the file with this path, which is never a page. */
  async find(path: string): Promise<DashboardFile | undefined> {
    if (this.#version === '') await this.#refresh();
    return path === '/index.html' ? undefined : this.#files.get(path);
  }

  /** Returns the text of the page; undefined if the dashboard is not built. */
  async page(): Promise<string | undefined> {
    await this.#refresh();
    return this.#files.get('/index.html')?.bytes.toString('utf8');
  }

  async #refresh(): Promise<void> {
    const version = await this.#readVersion();
    if (version === this.#version) return;
    this.#reading ??= this.#read(version).finally(() => (this.#reading = null));
    await this.#reading;
  }

  async #readVersion(): Promise<string> {
    try {
      const { mtimeMs, size, ino } = await stat(join(this.folder, 'index.html'));
      return `${mtimeMs}/${size}/${ino}`;
    } catch {
      return '';
    }
  }

  async #read(version: string): Promise<void> {
    const names = version === '' ? [] : await filesBelow(this.folder);
    const files = await Promise.all(names.map((name) => readBuilt(this.folder, name)));
    this.#files = new Map(files.map((file) => [file.path, file]));
    this.#version = version;
  }
}

/** Returns the folder of the built dashboard: the given one, or that of this installation. */
export const dashboardFolder = (given: string | undefined): string => {
  if (given) return given;
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'apps', 'dashboard')) && dirname(folder) !== folder)
    folder = dirname(folder);
  return join(folder, 'apps', 'dashboard', 'dist');
};
