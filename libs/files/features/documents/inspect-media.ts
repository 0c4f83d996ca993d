import type { MediaFacts } from '@antiphon/contracts/agent';
import { causedError } from '@antiphon/contracts/causes';
import type { BlobStore } from '@antiphon/database';
import { imageTypeOf, isPdf, readImageHeader } from '@antiphon/files-domain';
import { isAppError, rejected } from '@antiphon/kernel';
import { fileJobs } from '../text-work.js';
import type { DocumentText } from '../text-work.js';

/** Maximum size of an image or a document for a model. */
export const MAX_MEDIA_BYTES = 8 * 1_024 * 1_024;
/** Longest side of an image that vendors take, pixels. */
export const MAX_SIDE = 8_000;
/** Maximum number of pages that vendors take. */
export const MAX_PAGES = 100;
/** Time in which a document must be read, ms. */
export const DOCUMENT_DEADLINE_MS = 8_000;

/** First bytes of a file, by which its format is found. */
const SNIFFED_BYTES = 1_024;

/** Bytes of a version of a file of a workspace. */
export interface StoredFile {
  readonly workspace: string;
  readonly path: string;
  readonly digest: string;
  readonly size: number;
}

type Blobs = Pick<BlobStore, 'read' | 'readPart'>;

const CODES = {
  damaged: 'MEDIA.DAMAGED',
  unreadable: 'MEDIA.DAMAGED',
  too_large: 'MEDIA.TOO_LARGE',
  too_many_pixels: 'MEDIA.TOO_LARGE',
  too_many_pages: 'MEDIA.TOO_LARGE',
  no_image: 'MEDIA.NOT_AN_IMAGE',
  too_slow: 'MEDIA.TOO_SLOW',
} as const;

/** Returns the refusal of a file that models cannot get. */
export const refuseMedia = (
  { path }: Pick<StoredFile, 'path'>,
  problem: keyof typeof CODES,
  detail: string | number = '',
): Error => causedError(rejected, CODES[problem], { kind: 'media_refused', path, problem, detail });

/** Reads a PDF in a thread. Throws `MEDIA.DAMAGED` and `MEDIA.TOO_SLOW`. */
export const readPdfInThread = async (file: StoredFile, bytes: Uint8Array): Promise<DocumentText> => {
  // Copied, because the thread takes the buffer over.
  const input = [Uint8Array.from(bytes), MAX_PAGES] as const;
  try {
    return await fileJobs.run({
      ...{ name: 'readPdf', input, owner: file.workspace },
      ...{ deadlineMs: DOCUMENT_DEADLINE_MS, transfer: [input[0].buffer] },
    });
  } catch (error) {
    if (isAppError(error) && error.kind === 'transient') throw error;
    const isSlow = isAppError(error) && error.code !== 'WORK.FAILED';
    throw refuseMedia(file, isSlow ? 'too_slow' : 'unreadable');
  }
};

const inspectImage = (file: StoredFile, bytes: Uint8Array): MediaFacts => {
  const header = readImageHeader(bytes);
  if (header === null) throw refuseMedia(file, 'damaged', imageTypeOf(bytes) ?? '');
  if (Math.max(header.width, header.height) > MAX_SIDE) throw refuseMedia(file, 'too_many_pixels', MAX_SIDE);
  return header;
};

const inspectPdf = async (file: StoredFile, bytes: Uint8Array): Promise<MediaFacts> => {
  const { pages, text } = await readPdfInThread(file, bytes);
  if (pages === null || pages < 1) throw refuseMedia(file, 'unreadable');
  if (pages > MAX_PAGES) throw refuseMedia(file, 'too_many_pages', MAX_PAGES);
  return { mediaType: 'application/pdf', pages, textBytes: Buffer.byteLength(text) };
};

/**
 * Returns the facts of an image or a PDF, by its bytes and not by its name; undefined for any other
 * file. Throws `MEDIA.DAMAGED`, `MEDIA.TOO_LARGE` and `MEDIA.TOO_SLOW`.
 */
export const inspectMedia = async (blobs: Blobs, file: StoredFile): Promise<MediaFacts | undefined> => {
  const { workspace, digest, size } = file;
  const start = await blobs.readPart(workspace, digest, 0, SNIFFED_BYTES);
  const isImageFile = imageTypeOf(start) !== null;
  if (!isImageFile && !isPdf(start)) return undefined;
  if (size > MAX_MEDIA_BYTES) throw refuseMedia(file, 'too_large', MAX_MEDIA_BYTES);
  const bytes = await blobs.read(workspace, digest);
  return isImageFile ? inspectImage(file, bytes) : inspectPdf(file, bytes);
};
