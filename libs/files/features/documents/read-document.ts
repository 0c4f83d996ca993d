import type { MediaFacts } from '@antiphon/contracts/agent';
import type { BlobStore } from '@antiphon/database';
import { isAppError } from '@antiphon/kernel';
import { readPdfInThread } from './inspect-media.js';
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
  if (file.media?.mediaType !== 'application/pdf') return null;
  const bytes = await blobs.read(file.workspace, file.digest);
  try {
    return (await readPdfInThread(file, bytes)).text;
  } catch (error) {
    if (isAppError(error) && error.code.startsWith('MEDIA.')) return `[${error.message}]`;
    throw error;
  }
};
