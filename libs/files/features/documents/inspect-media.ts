import type { MediaFacts, OfficeType } from '@antiphon/contracts/agent';
import { causedError } from '@antiphon/contracts/causes';
import type { BlobStore } from '@antiphon/database';
import { imageTypeOf, isOldOffice, isPdf, isZip, readImageHeader } from '@antiphon/files-domain';
import { isAppError, rejected } from '@antiphon/kernel';
import type { PoolJob } from '@antiphon/service-host/worker-pool';
import { fileJobs } from '../text-work.js';
import type { DocumentText, FileJobs } from '../text-work.js';

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

type ThreadOptions = Pick<PoolJob<FileJobs, 'readPdf'>, 'owner' | 'deadlineMs' | 'transfer'>;

const CODES = {
  damaged: 'MEDIA.DAMAGED',
  unreadable: 'MEDIA.DAMAGED',
  too_large: 'MEDIA.TOO_LARGE',
  too_many_pixels: 'MEDIA.TOO_LARGE',
  too_many_pages: 'MEDIA.TOO_LARGE',
  no_image: 'MEDIA.NOT_AN_IMAGE',
  encrypted: 'MEDIA.DAMAGED',
  old_format: 'MEDIA.DAMAGED',
  unpacked_too_large: 'MEDIA.TOO_LARGE',
  too_many_parts: 'MEDIA.TOO_LARGE',
  too_slow: 'MEDIA.TOO_SLOW',
} as const;

/** Returns the refusal of a file that models cannot get. */
export const refuseMedia = (
  { path }: Pick<StoredFile, 'path'>,
  problem: keyof typeof CODES,
  detail: string | number = '',
): Error => causedError(rejected, CODES[problem], { kind: 'media_refused', path, problem, detail });

/** Runs a job on a document in a thread. Throws `MEDIA.DAMAGED` and `MEDIA.TOO_SLOW`. */
const readInThread = async <Text>(
  file: StoredFile,
  bytes: Uint8Array,
  read: (copy: Uint8Array, job: ThreadOptions) => Promise<Text>,
): Promise<Text> => {
  // Copied, because the thread takes the buffer over.
  const copy = Uint8Array.from(bytes);
  const { workspace: owner } = file;
  try {
    return await read(copy, { owner, deadlineMs: DOCUMENT_DEADLINE_MS, transfer: [copy.buffer] });
  } catch (error) {
    if (isAppError(error) && error.kind === 'transient') throw error;
    const isSlow = isAppError(error) && error.code !== 'WORK.FAILED';
    throw refuseMedia(file, isSlow ? 'too_slow' : 'unreadable');
  }
};

export const readPdfInThread = (file: StoredFile, bytes: Uint8Array): Promise<DocumentText> =>
  readInThread(file, bytes, (copy, job) =>
    fileJobs.run({ name: 'readPdf', input: [copy, MAX_PAGES], ...job }),
  );

/** Reads an office file in a thread. Returns null for another archive. */
export const readOfficeInThread = async (
  file: StoredFile,
  bytes: Uint8Array,
): Promise<{ readonly mediaType: OfficeType; readonly text: string } | null> => {
  const read = await readInThread(file, bytes, (copy, job) =>
    fileJobs.run({ name: 'readOffice', input: copy, ...job }),
  );
  if (read === null || 'text' in read) return read;
  throw refuseMedia(file, read.problem, read.detail);
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

const OFFICE_NAME = /\.(?:docx|xlsx|pptx|odt|ods|odp)$/i;
const OLD_OFFICE_NAME = /\.(?:doc|xls|ppt)$/i;

/** Returns the facts of an office file; undefined for another archive. */
const inspectOffice = async (blobs: Blobs, file: StoredFile): Promise<MediaFacts | undefined> => {
  const { workspace, path, digest, size } = file;
  const isNamed = OFFICE_NAME.test(path);
  if (size > MAX_MEDIA_BYTES) {
    if (isNamed) throw refuseMedia(file, 'too_large', MAX_MEDIA_BYTES);
    return undefined;
  }
  try {
    const read = await readOfficeInThread(file, await blobs.read(workspace, digest));
    if (read) return { mediaType: read.mediaType, textBytes: Buffer.byteLength(read.text) };
  } catch (error) {
    // An archive that is no office file has no text, even if it is damaged.
    if (isNamed || !isAppError(error) || error.code !== 'MEDIA.DAMAGED') throw error;
    return undefined;
  }
  if (isNamed) throw refuseMedia(file, 'unreadable');
  return undefined;
};

/** Refuses a file of the container of older formats, which also has encrypted files of newer ones. */
const refuseOldOffice = (file: StoredFile): void => {
  if (OFFICE_NAME.test(file.path)) throw refuseMedia(file, 'encrypted');
  if (OLD_OFFICE_NAME.test(file.path)) throw refuseMedia(file, 'old_format');
};

/**
 * Returns the facts of an image, a PDF or an office file, by its bytes and not by its name. Returns
 * undefined for any other file. Throws `MEDIA.DAMAGED`, `MEDIA.TOO_LARGE` and `MEDIA.TOO_SLOW`.
 */
export const inspectMedia = async (blobs: Blobs, file: StoredFile): Promise<MediaFacts | undefined> => {
  const { workspace, digest, size } = file;
  const start = await blobs.readPart(workspace, digest, 0, SNIFFED_BYTES);
  const isImageFile = imageTypeOf(start) !== null;
  if (isZip(start)) return inspectOffice(blobs, file);
  if (isOldOffice(start)) refuseOldOffice(file);
  if (!isImageFile && !isPdf(start)) return undefined;
  if (size > MAX_MEDIA_BYTES) throw refuseMedia(file, 'too_large', MAX_MEDIA_BYTES);
  const bytes = await blobs.read(workspace, digest);
  return isImageFile ? inspectImage(file, bytes) : inspectPdf(file, bytes);
};
