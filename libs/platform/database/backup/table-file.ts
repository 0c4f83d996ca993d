import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { invalid } from '@antiphon/kernel';

/** Writes lines to a compressed, synced file and answers its SHA-256 in hex. */
export const writeLines = async (file: string, pages: AsyncIterable<readonly string[]>): Promise<string> => {
  const hash = createHash('sha256');
  const joined = async function* () {
    for await (const lines of pages) yield lines.map((line) => `${line}\n`).join('');
  };
  const hashed = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      hash.update(chunk);
      yield chunk;
    }
  };
  const out = createWriteStream(file, { mode: 0o600, flush: true });
  await pipeline(Readable.from(joined()), createGzip(), hashed, out);
  return hash.digest('hex');
};

/** Throws `BACKUP.DAMAGED` when the file is not there, or not the one that was written. */
export const checkFile = async (file: string, sha256: string): Promise<void> => {
  const hash = createHash('sha256');
  try {
    await pipeline(createReadStream(file), hash);
  } catch (cause) {
    throw invalid('BACKUP.DAMAGED', `${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
  if (hash.digest('hex') !== sha256)
    throw invalid('BACKUP.DAMAGED', `${file} is not the file that was written: its SHA-256 is another`);
};

/** The lines of a file, some at a time. */
export async function* readLines(file: string, pageSize: number): AsyncGenerator<string[], void, undefined> {
  let page: string[] = [];
  for await (const line of createInterface({ input: createReadStream(file).pipe(createGunzip()) })) {
    page.push(line);
    if (page.length < pageSize) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}
