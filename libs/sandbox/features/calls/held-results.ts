import { createHash } from 'node:crypto';
import { MAX_INLINE_RESULT_BYTES, MAX_RESULT_BYTES, RESULT_PREVIEW_BYTES } from '@antiphon/contracts/sandbox';
import { clipMiddle, jsonBytes, leftOutNote } from '@antiphon/kernel';
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

interface Held {
  readonly bytes: Buffer;
  readonly until: number;
}

/** Time for which a result waits for its caller, ms. */
const KEEP_MS = 60_000;
/** Maximum size of all results that wait. */
const MAX_HELD_BYTES = 4 * MAX_RESULT_BYTES;

/**
 * Results that are too large for a reply. The caller of each reads it in parts, and stores it. They
 * are in the memory of this process only: a result that is gone counts as a lost response.
 */
export class HeldResults {
  private readonly held = new Map<string, Held>();
  private size = 0;

  /** `now` is a steady clock. */
  constructor(
    private readonly now: () => number,
    private readonly maxBytes = MAX_HELD_BYTES,
  ) {}

  /** Holds a result. Returns false if too many others wait. */
  hold(key: string, bytes: Buffer): boolean {
    this.release(key);
    const now = this.now();
    for (const [other, { until }] of this.held) if (until <= now) this.release(other);
    if (this.size + bytes.length > this.maxBytes) return false;
    this.held.set(key, { bytes, until: now + KEEP_MS });
    this.size += bytes.length;
    return true;
  }

  /** Returns a part of a result, or null for one that is gone. */
  read(key: string, offset: number, length: number): Buffer | null {
    return this.held.get(key)?.bytes.subarray(offset, offset + length) ?? null;
  }

  /** Forgets a result that its caller has, or that has waited too long. */
  release(key: string): void {
    this.size -= this.held.get(key)?.bytes.length ?? 0;
    this.held.delete(key);
  }
}

/** Returns true for a result that fits neither a reply nor an event. */
const isLarge = (content: string): boolean =>
  Buffer.byteLength(content) > MAX_INLINE_RESULT_BYTES ||
  // A control character takes six bytes in JSON.
  (content.length > MAX_INLINE_RESULT_BYTES / 6 && jsonBytes(content) > MAX_INLINE_RESULT_BYTES);

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
  if (outcome.outcome !== 'completed' || !isLarge(outcome.content)) return { outcome };
  const bytes = Buffer.from(outcome.content);
  if (bytes.length > MAX_RESULT_BYTES || !held.hold(heldKeyOf(call), bytes))
    return { outcome: tooLarge(bytes.length) };
  const digest = createHash('sha256').update(bytes).digest('hex');
  const content = clipMiddle(outcome.content, RESULT_PREVIEW_BYTES, leftOutNote(call.callId, bytes.length));
  return { outcome: { ...outcome, content }, large: { digest, size: bytes.length } };
};
