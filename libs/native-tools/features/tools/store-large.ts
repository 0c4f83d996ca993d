import type { StoredResult } from '@antiphon/contracts/agent';
import { RESULT_PREVIEW_BYTES } from '@antiphon/contracts/sandbox';
import type { BlobStore } from '@antiphon/database';
import { clipMiddle, leftOutNote, toStorable } from '@antiphon/kernel';

/** Length from which a result is stored, UTF-16 units: the event of its call has less. */
const LARGE = 200_000;

/** A stored result, and its head and tail for the event of its call. */
interface LargeResult {
  readonly content: string;
  readonly stored: StoredResult;
}

/** Stores a result that is too large for the event of its call. Returns null for any other. */
export const storeLarge = async (
  blobs: Pick<BlobStore, 'put'>,
  workspace: string,
  callId: string,
  result: string,
): Promise<LargeResult | null> => {
  if (result.length <= LARGE) return null;
  const content = toStorable(result);
  const { digest, size } = await blobs.put(workspace, Buffer.from(content));
  return {
    content: clipMiddle(content, RESULT_PREVIEW_BYTES, leftOutNote(callId, size)),
    stored: { digest, size },
  };
};
