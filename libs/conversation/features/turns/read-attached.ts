import type { AttachedText, SessionState } from '@antiphon/conversation-domain';
import type { BlobStore } from '@antiphon/database';
import { isAppError } from '@antiphon/kernel';

/**
 * Maximum number of bytes that one prompt reads of all attached files together: more than a context
 * has room for, and decoded in some milliseconds.
 */
const MAX_BYTES = 4 * 1024 * 1024;

/** Notes in place of bytes that are gone. */
const GONE: ReadonlyMap<string, string> = new Map([
  ['FILE.ERASED', '[the content of this file was erased]'],
  ['FILE.NO_BYTES', '[the content of this file is lost: its bytes are not stored]'],
]);

/** Returns the text of bytes; null if they are not UTF-8. A part may end within a character. */
const decodeText = (bytes: Uint8Array, isPart: boolean): string | null => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: isPart });
  } catch {
    return null;
  }
};

/**
 * Reads attached snapshots by their digests, so that a replay reads the same. It reads one after
 * another, and of each at most an equal share of the bound. A note stands for bytes that are gone.
 */
export const readAttachedTexts = async (
  blobs: Pick<BlobStore, 'readPart'>,
  workspace: string,
  attached: SessionState['attached'],
): Promise<AttachedText[]> => {
  const share = Math.floor(MAX_BYTES / Math.max(1, attached.length));
  const texts: AttachedText[] = [];
  for (const file of attached) {
    const isPart = file.size > share;
    try {
      const bytes = await blobs.readPart(workspace, file.digest, 0, share);
      texts.push({ ...file, text: decodeText(bytes, isPart), isPart });
    } catch (error) {
      const note = isAppError(error) ? GONE.get(error.code) : undefined;
      if (note === undefined) throw error;
      texts.push({ ...file, text: note });
    }
  }
  return texts;
};
