import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { readGzipLines } from '@antiphon/database';
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

const archiveDamaged = (file: string, reason: string, cause?: unknown): Error =>
  invalid('LOG.ARCHIVE_DAMAGED', `the archive file ${file} ${reason}`, { cause });
const throwDamaged = (file: string, reason: string, cause?: unknown): never => {
  throw archiveDamaged(file, reason, cause);
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

/** Characters of a page. */
const PAGE_CHARS = 8 * 1024 * 1024;
/** Characters of a line. 1 MiB of numbers like `1e308` becomes 52 MiB in PostgreSQL's notation. */
const LINE_CHARS = 64 * 1024 * 1024;

const parseHeader = (file: string, line: string): ArchiveHeader => {
  try {
    return JSON.parse(line) as ArchiveHeader;
  } catch (cause) {
    return throwDamaged(file, 'begins with no header', cause);
  }
};

/** Bounds of an archive file that its reader knows from the database. */
export interface ExpectedArchive {
  /** The file must be of this archive. Default: any. */
  readonly archiveId?: string;
  readonly events: number;
  /** Maximum size of the expanded file, bytes. */
  readonly bytes?: number | undefined;
}

/**
 * Reads the lines of a file after its header, in pages bounded in number and length. Throws
 * `LOG.ARCHIVE_DAMAGED` for the file of another archive, for a line that is longer than any event,
 * and for more lines than events.
 */
export async function* readArchiveFile(
  file: string,
  { archiveId, events, bytes }: ExpectedArchive,
  pageRows: number,
): AsyncGenerator<string[], void, undefined> {
  const refuse = (reason: string): Error => archiveDamaged(file, reason);
  const bounds = { pageRows, pageChars: PAGE_CHARS, lineChars: LINE_CHARS, lines: events + 1, bytes, refuse };
  let hasHeader = false;
  for await (const lines of readGzipLines(file, bounds)) {
    const rows = hasHeader ? lines : lines.slice(1);
    if (!hasHeader) {
      const header = parseHeader(file, lines[0] ?? '');
      if (archiveId !== undefined && (header.archiveId !== archiveId || header.format !== 1))
        throwDamaged(file, 'belongs to another archive');
    }
    hasHeader = true;
    if (rows.length > 0) yield rows;
  }
}
