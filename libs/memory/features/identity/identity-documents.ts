import { constants } from 'node:fs';
import { open, realpath, stat } from 'node:fs/promises';
import { isAbsolute, join, relative, sep } from 'node:path';
import type { AgentConfig } from '@antiphon/config';
import { IDENTITY_FILES } from '@antiphon/memory-domain';
import type { IdentityFile } from '@antiphon/memory-domain';

/** Maximum size of an identity document; a larger one is refused. */
export const MAX_DOCUMENT_BYTES = 256 * 1024;

/** Path of a document, and the folder that its links may not leave; null allows any target. */
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
  const rest = relative(folder, path);
  return rest !== '..' && !rest.startsWith(`..${sep}`) && !isAbsolute(rest);
};

const decode = (bytes: Buffer): string | null => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null; // the caller reports it
  }
};

/** Reads a file up to the maximum size; the limit holds for a file that grows while it is read. */
const readBounded = async (path: string): Promise<ReadDocument> => {
  // Without O_NONBLOCK, opening a pipe without a writer would block.
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

/** Reads one document; a problem is returned as a status, never thrown. */
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
 * Signature of a file by `stat`: inode, size and times, among them the time of the last change,
 * which no program can set. A change within `SETTLE_MS` may be followed by another in the same tick
 * of the file system's clock. Such a signature is not `settled`, and the file is read again.
 */
export interface DocumentSignature {
  readonly text: string;
  readonly settled: boolean;
}

const SETTLE_MS = 1_000;

/**
 * Signs a document; `now` is the machine's clock, ms since the epoch, as used by its file system.
 */
export const signDocument = async ({ path }: DocumentPlace, now: number): Promise<DocumentSignature> => {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs, ctimeMs } = await stat(path, { bigint: true });
    const settled = now - Number(ctimeMs) > SETTLE_MS;
    return { text: [dev, ino, size, mtimeNs, ctimeNs].join(':'), settled };
  } catch (error) {
    return { text: codeOf(error), settled: true };
  }
};

export type IdentifiedAgent = Pick<AgentConfig, 'id' | 'name' | 'soulPath' | 'identityDir'>;

/** A document of an agent's configuration. */
export interface IdentitySource extends DocumentPlace {
  readonly file: IdentityFile;
}

/**
 * Lists an agent's documents. `soul_path` replaces the folder's SOUL.md, and its links may lead
 * anywhere.
 */
export const sourcesOf = ({ soulPath, identityDir }: IdentifiedAgent): IdentitySource[] =>
  IDENTITY_FILES.flatMap((file): IdentitySource[] => {
    if (file === 'SOUL.md' && soulPath !== null) return [{ file, path: soulPath, within: null }];
    return identityDir === null ? [] : [{ file, path: join(identityDir, file), within: identityDir }];
  });
