import { constants } from 'node:fs';
import { open, realpath, stat } from 'node:fs/promises';
import { isAbsolute, relative, sep } from 'node:path';

/** An identity document is a page, not a book: more than this is refused. */
export const MAX_DOCUMENT_BYTES = 256 * 1024;

/** Where a document is, and the folder that a link of it may not leave; without one it may lead anywhere. */
export interface DocumentPlace {
  readonly path: string;
  readonly within: string | null;
}

export type ReadDocument =
  | { readonly status: 'read'; readonly text: string }
  | { readonly status: 'missing' }
  | { readonly status: 'unusable'; readonly reason: string };

const unusable = (reason: string): ReadDocument => ({ status: 'unusable', reason });

const codeOf = (error: unknown): string => {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : 'unknown error';
};

const isMissing = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes(codeOf(error));

const isWithin = (folder: string, path: string): boolean => {
  const way = relative(folder, path);
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
};

const decode = (bytes: Buffer): string | null => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null; // the caller says so in its own words
  }
};

/** The file may grow while it is read: what is read is bounded, not what its size was. */
const readBounded = async (path: string): Promise<ReadDocument> => {
  // Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  if (!(await file.stat()).isFile()) return unusable('it is not a regular file');
  const buffer = Buffer.alloc(MAX_DOCUMENT_BYTES + 1);
  let length = 0;
  for (let read = -1; read !== 0 && length < buffer.length; length += read)
    read = (await file.read(buffer, length, buffer.length - length, length)).bytesRead;
  if (length > MAX_DOCUMENT_BYTES) return unusable(`it is larger than ${MAX_DOCUMENT_BYTES} bytes`);
  const text = decode(buffer.subarray(0, length));
  return text === null ? unusable('it is not UTF-8 text') : { status: 'read', text };
};

/** Reads one document; what is wrong with it is an answer, never an error. */
export const readDocument = async ({ path, within }: DocumentPlace): Promise<ReadDocument> => {
  try {
    const real = await realpath(path);
    if (within !== null && !isWithin(await realpath(within), real))
      return unusable('it is a link that leads out of the identity folder');
    return await readBounded(real);
  } catch (error) {
    return isMissing(error) ? { status: 'missing' } : unusable(`it cannot be read (${codeOf(error)})`);
  }
};

/**
 * What changes when a file's content may have changed, for the price of a `stat`: where it is, its size, and the time of
 * its last change, which nobody can set. A change that came within `SETTLE_MS` of the look may be followed by another in the same
 * tick of the file system's clock, so such a signature is never taken for known.
 */
export interface DocumentSignature {
  readonly text: string;
  readonly settled: boolean;
}

const SETTLE_MS = 1_000;

/** `now`: milliseconds since the epoch, of the machine's own clock, which the file system's times are of. */
export const signDocument = async ({ path }: DocumentPlace, now: number): Promise<DocumentSignature> => {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs, ctimeMs } = await stat(path, { bigint: true });
    const settled = now - Number(ctimeMs) > SETTLE_MS;
    return { text: [dev, ino, size, mtimeNs, ctimeNs].join(':'), settled };
  } catch (error) {
    return { text: codeOf(error), settled: true };
  }
};
