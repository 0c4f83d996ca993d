import { createHash } from 'node:crypto';
import { MAX_INLINE_RESULT_BYTES, MAX_RESULT_BYTES, RESULT_PREVIEW_BYTES } from '@antiphon/contracts/sandbox';
import { HeldBytes, clipMiddle, exceedsJsonBytes, leftOutNote } from '@antiphon/kernel';
import { toolFailed } from '@antiphon/sandbox-domain';
import type { ToolOutcome } from '@antiphon/sandbox-domain';

/** Returns the key of the result of a call. */
export const heldKeyOf = ({
  workspace,
  callId,
}: {
  readonly workspace: string;
  readonly callId: string;
}): string => `${workspace}/${callId}`;

/** Time for which a result waits for its caller, ms. */
const KEEP_MS = 60_000;
/** Maximum size of all results that wait. */
const MAX_HELD_BYTES = 4 * MAX_RESULT_BYTES;

/**
 * Results that are too large for a reply. The caller of each reads it in parts, and stores it. They
 * are in the memory of this process only: a result that is gone counts as a lost response.
 */
export class HeldResults extends HeldBytes {
  /** `now` is a steady clock. */
  constructor(now: () => number, maxBytes = MAX_HELD_BYTES) {
    super(now, KEEP_MS, maxBytes);
  }
}

const tooLarge = (bytes: number): ToolOutcome =>
  toolFailed('TOOL.OUTPUT', { kind: 'tool_output_too_large', bytes, max: MAX_RESULT_BYTES });

/** An outcome, and what the reply says of a result that is held. */
interface HeldOutcome {
  readonly outcome: ToolOutcome;
  readonly large?: { readonly digest: string; readonly size: number };
}

/** Holds the result of a call that is too large for its reply, which gets the head and tail. */
export const holdLarge = (
  held: HeldResults,
  call: Parameters<typeof heldKeyOf>[0],
  outcome: ToolOutcome,
): HeldOutcome => {
  if (outcome.outcome !== 'completed' || !exceedsJsonBytes(outcome.content, MAX_INLINE_RESULT_BYTES))
    return { outcome };
  const bytes = Buffer.from(outcome.content);
  if (bytes.length > MAX_RESULT_BYTES || !held.hold(heldKeyOf(call), bytes))
    return { outcome: tooLarge(bytes.length) };
  const digest = createHash('sha256').update(bytes).digest('hex');
  const content = clipMiddle(outcome.content, RESULT_PREVIEW_BYTES, leftOutNote(call.callId, bytes.length));
  return { outcome: { ...outcome, content }, large: { digest, size: bytes.length } };
};
