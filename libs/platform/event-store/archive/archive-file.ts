import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { invalid } from '@antiphon/kernel';

/** First line of an archive file. Each other line is one row of `events` as `to_jsonb` text. */
export interface ArchiveHeader {
  readonly kind: 'antiphon-archive';
  readonly format: 1;
  readonly archiveId: string;
  readonly cutPosition: number;
}

const sync = async (path: string): Promise<void> => {
  const handle = await open(path, 'r');
  await handle.sync().finally(() => handle.close());
};

async function* toText(header: ArchiveHeader, pages: AsyncIterable<readonly string[]>) {
  yield `${JSON.stringify(header)}\n`;
  for await (const lines of pages) yield lines.map((line) => `${line}\n`).join('');
}

/**
 * Writes an archive file and returns its SHA-256. The file appears under its name only when it is
 * complete and synced to the disk. `pages` are lines without line feeds.
 */
export const writeArchiveFile = async (
  file: string,
  header: ArchiveHeader,
  pages: AsyncIterable<readonly string[]>,
): Promise<Buffer> => {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const part = `${file}.part`;
  const hash = createHash('sha256');
  const withHash = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      hash.update(chunk);
      yield chunk;
    }
  };
  try {
    const out = createWriteStream(part, { mode: 0o600, flush: true });
    await pipeline(Readable.from(toText(header, pages)), createGzip(), withHash, out);
    await rename(part, file);
    await sync(dirname(file));
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
  return hash.digest();
};

const throwDamaged = (file: string, reason: string, cause?: unknown): never => {
  throw invalid('LOG.ARCHIVE_DAMAGED', `the archive file ${file} ${reason}`, { cause });
};

/** Throws `LOG.ARCHIVE_DAMAGED` when the file is missing or its SHA-256 differs. */
export const checkArchiveFile = async (file: string, sha256: Buffer): Promise<void> => {
  const hash = createHash('sha256');
  try {
    await pipeline(createReadStream(file), hash);
  } catch (cause) {
    throwDamaged(file, `cannot be read: ${(cause as Error).message}`, cause);
  }
  if (!hash.digest().equals(sha256))
    throwDamaged(file, 'was changed after it was written: its SHA-256 differs');
};

/** Length of the lines of a page. */
const PAGE_CHARS = 8 * 1024 * 1024;

const parseHeader = (file: string, line: string): ArchiveHeader => {
  try {
    return JSON.parse(line) as ArchiveHeader;
  } catch (cause) {
    return throwDamaged(file, 'begins with no header', cause);
  }
};

/**
 * Reads the lines of a file after its header, in pages of a number of lines and of 8 MiB. Throws
 * `LOG.ARCHIVE_DAMAGED` for the file of another archive.
 */
export async function* readArchiveFile(
  file: string,
  archiveId: string,
  pageSize: number,
): AsyncGenerator<string[], void, undefined> {
  const lines = createInterface({ input: createReadStream(file).pipe(createGunzip()) });
  let header: ArchiveHeader | undefined;
  let page: string[] = [];
  let length = 0;
  for await (const line of lines) {
    if (header === undefined) {
      header = parseHeader(file, line);
      if (header.archiveId !== archiveId || header.format !== 1)
        throwDamaged(file, 'belongs to another archive');
      continue;
    }
    page.push(line);
    length += line.length;
    if (page.length < pageSize && length < PAGE_CHARS) continue;
    yield page;
    page = [];
    length = 0;
  }
  if (page.length > 0) yield page;
}
