import { ATTEMPT_SPAN } from '@antiphon/contracts/agent';
import type { Frame, FrameCursor, StreamedFrame } from '@antiphon/contracts/agent';
import type { ModelSink } from '@antiphon/providers-domain';
import { cutToJsonBytes, jsonBytes, toStorable } from '@antiphon/kernel';

/**
 * Number of frames after which only large ones are sent, which bounds the list of frames of a long
 * response.
 */
const MANY_FRAMES = 2_000;
const LARGE_FRAME = 256;
/**
 * Maximum size of a response, bytes of its JSON with its list of frames. An event holds 1 MiB, of
 * which the arguments of tool calls take a part.
 */
export const MAX_STREAMED_BYTES = 800_000;
/** Upper bound of an entry in the list of frames, bytes of JSON. */
const FRAME_BYTES = 36;

/**
 * Streamed part of a response, as its event stores it. The frames divide its text and thought, in
 * order.
 */
export interface Streamed {
  readonly text: string;
  readonly thought: string;
  readonly frames: StreamedFrame[];
}

const endsWithHighSurrogate = (text: string): boolean => {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
};

/**
 * Converts a model's deltas to frames: the first at once, and those of one event-loop round as one
 * frame. Frames get the offsets that the fold of the log will give them (`cursor` is the one after
 * `ModelCallStarted`). Each frame is storable text, so half a surrogate pair waits for the other.
 */
export class DeltaStream implements ModelSink {
  private readonly sent = { text: '', thought: '' };
  private readonly frames: StreamedFrame[] = [];
  private pending: { kind: StreamedFrame['kind']; text: string } = { kind: 'text', text: '' };
  private scheduled: NodeJS.Immediate | null = null;
  /** Size of all deltas and of the list of frames, bytes of JSON. */
  private bytes = 0;
  private index: number;
  private prev: number;
  private isEnded = false;

  /**
   * `onOverflow` is called when the model sends more than an event can store; the rest is dropped.
   */
  constructor(
    private readonly cursor: FrameCursor,
    private readonly turnId: string,
    private readonly publish: (frames: readonly Frame[]) => void,
    private readonly onOverflow: () => void,
  ) {
    this.index = cursor.nextIndex;
    this.prev = cursor.lastOffset;
  }

  onText(delta: string): void {
    this.add('text', delta);
  }

  onThought(delta: string): void {
    this.add('thought', delta);
  }

  /**
   * Sends pending text and returns all that was streamed; later deltas are ignored. `whole` is the
   * final response of the adapter: it is sent now if nothing was streamed before.
   */
  end(whole?: { readonly text: string; readonly thought: string }): Streamed {
    this.flush();
    if (whole && this.frames.length === 0) {
      this.add('thought', whole.thought);
      this.add('text', whole.text);
      this.flush();
    }
    this.isEnded = true;
    if (this.scheduled) clearImmediate(this.scheduled);
    this.scheduled = null;
    return { ...this.sent, frames: this.frames };
  }

  private add(kind: StreamedFrame['kind'], delta: string): void {
    if (this.isEnded || delta === '' || this.isFull()) return;
    if (this.pending.kind !== kind) {
      this.flush();
      this.pending = { kind, text: '' };
    }
    // One delta may be larger than an event: its start is kept.
    this.pending.text += cutToJsonBytes(delta, MAX_STREAMED_BYTES - this.bytes);
    this.bytes += jsonBytes(delta);
    if (this.isFull()) this.onOverflow();
    if (this.frames.length === 0) this.flushComplete();
    if (this.pending.text !== '') this.schedule();
  }

  private schedule(): void {
    this.scheduled ??= setImmediate(() => {
      this.scheduled = null;
      this.flushComplete();
    });
  }

  /** Sends the pending text, unless a later delta should be added to it. */
  private flushComplete(): void {
    const { text } = this.pending;
    const isTooSmall = this.frames.length >= MANY_FRAMES && text.length < LARGE_FRAME;
    if (!endsWithHighSurrogate(text) && !isTooSmall) this.flush();
  }

  private flush(): void {
    if (this.pending.text === '') return;
    const { kind } = this.pending;
    const text = toStorable(this.pending.text);
    this.pending = { kind, text: '' };
    this.sent[kind] += text;
    this.frames.push({ kind, length: text.length });
    this.bytes += FRAME_BYTES;
    const offset = this.cursor.attempt * ATTEMPT_SPAN + this.index++;
    this.publish([{ event: kind, data: text, offset, prev: this.prev, turnId: this.turnId }]);
    this.prev = offset;
  }

  private isFull(): boolean {
    return this.bytes > MAX_STREAMED_BYTES;
  }
}
