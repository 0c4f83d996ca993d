import type { MediaFacts } from '@antiphon/contracts/agent';
import type { BlobStore } from '@antiphon/database';
import { isAppError } from '@antiphon/kernel';
import { readOfficeInThread, readPdfInThread } from './inspect-media.js';
import type { StoredFile } from './inspect-media.js';

type Blobs = Pick<BlobStore, 'read'>;

/**
 * Returns the text of a document, a note if it cannot be read, and null for a file that is no
 * document. Throws `FILE.ERASED` and `FILE.NO_BYTES`.
 */
export const readDocument = async (
  blobs: Blobs,
  file: StoredFile & { readonly media?: MediaFacts },
): Promise<string | null> => {
  const { media, workspace, digest } = file;
  if (!media || media.mediaType.startsWith('image/')) return null;
  const bytes = await blobs.read(workspace, digest);
  try {
    if (media.mediaType === 'application/pdf') return (await readPdfInThread(file, bytes)).text;
    return (await readOfficeInThread(file, bytes))?.text ?? null;
  } catch (error) {
    if (isAppError(error) && error.code.startsWith('MEDIA.')) return `[${error.message}]`;
    throw error;
  }
};
