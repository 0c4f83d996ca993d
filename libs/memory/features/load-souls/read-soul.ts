import { open } from 'node:fs/promises';
import { toSoul } from '@antiphon/memory-domain';
import type { Soul } from '@antiphon/memory-domain';

/** A soul is a page, not a book: more than this is refused. */
export const MAX_SOUL_BYTES = 256 * 1024;

export type SoulFile =
  | { readonly status: 'loaded'; readonly soul: Soul | null }
  | { readonly status: 'missing' }
  | { readonly status: 'unusable'; readonly reason: string };

const codeOf = (error: unknown): string => {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : 'unknown error';
};

const readBounded = async (path: string): Promise<SoulFile> => {
  const file = await open(path, 'r');
  try {
    const info = await file.stat();
    if (!info.isFile()) return { status: 'unusable', reason: 'it is not a regular file' };
    if (info.size > MAX_SOUL_BYTES)
      return { status: 'unusable', reason: `it is larger than ${MAX_SOUL_BYTES} bytes` };
    return { status: 'loaded', soul: toSoul((await file.readFile('utf8')).toWellFormed()) };
  } finally {
    await file.close();
  }
};

/** Reads one soul document; what is wrong with it is an answer, never an error. */
export const readSoul = async (path: string): Promise<SoulFile> => {
  try {
    return await readBounded(path);
  } catch (error) {
    const code = codeOf(error);
    return code === 'ENOENT' || code === 'ENOTDIR'
      ? { status: 'missing' }
      : { status: 'unusable', reason: `it cannot be read (${code})` };
  }
};
