import { ATTEMPT_SPAN } from '@antiphon/contracts/agent';
import type { Frame, FrameCursor, StreamedFrame } from '@antiphon/contracts/agent';
import type { ModelSink } from '@antiphon/agent-domain';
import { toStorable } from '@antiphon/kernel';

/** After this many frames only larger ones go out, so that a very long answer's list of frames stays small. */
const MANY_FRAMES = 2_000;
const LARGE_FRAME = 256;
/** An event holds 1 MiB at most; JSON may take six bytes for a character. What is longer is no answer to keep. */
export const MAX_STREAMED_CHARS = 150_000;

/** What an attempt has streamed, as its event will keep it: the frames cut its text and thought in order. */
export interface Streamed {
  readonly text: string;
  readonly thought: string;
  readonly frames: StreamedFrame[];
}

export interface DeltaStream extends ModelSink {
  /**
   * Sends what waits and answers all that was streamed; what a model says after that is not heard. `whole` is the
   * answer as its adapter gave it in the end: where nothing was streamed, it goes out now.
   */
  end(whole?: { readonly text: string; readonly thought: string }): Streamed;
}

const isHighSurrogate = (text: string): boolean => {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
};

/**
 * Turns a model's deltas into frames: the first at once, those that come in the same turn of the event loop as one.
 * Frames get the offsets that the fold of the log will give them (`cursor`: after `ModelCallStarted`). Every cut
 * is storable text as it stands, so half a surrogate pair waits for the other half. `onOverflow` is called once
 * when more has come than an event can keep; the rest is dropped.
 */
export const createDeltaStream = (
  cursor: FrameCursor,
  turnId: string,
  publish: (frames: readonly Frame[]) => void,
  onOverflow: () => void,
): DeltaStream => {
  const kept = { text: '', thought: '' };
  const frames: StreamedFrame[] = [];
  let pending: { kind: StreamedFrame['kind']; text: string } = { kind: 'text', text: '' };
  let scheduled: NodeJS.Immediate | null = null;
  let index = cursor.nextIndex;
  let prev = cursor.lastOffset;
  let ended = false;

  const emit = (): void => {
    const { kind } = pending;
    const text = toStorable(pending.text);
    pending = { kind, text: '' };
    kept[kind] += text;
    frames.push({ kind, length: text.length });
    const offset = cursor.attempt * ATTEMPT_SPAN + index++;
    publish([{ event: kind, data: text, offset, prev, turnId }]);
    prev = offset;
  };
  const flush = (all: boolean): void => {
    if (all || !(pending.text === '' || isHighSurrogate(pending.text) || isTooSmall())) {
      if (pending.text !== '') emit();
    }
  };
  const isTooSmall = (): boolean => frames.length >= MANY_FRAMES && pending.text.length < LARGE_FRAME;
  const schedule = (): void => {
    scheduled ??= setImmediate(() => {
      scheduled = null;
      flush(false);
    });
  };
  const isFull = (): boolean =>
    kept.text.length + kept.thought.length + pending.text.length > MAX_STREAMED_CHARS;
  const take = (kind: StreamedFrame['kind'], delta: string): void => {
    if (ended || delta === '' || isFull()) return;
    if (pending.kind !== kind) {
      flush(true);
      pending = { kind, text: '' };
    }
    pending.text += delta;
    if (isFull()) onOverflow();
    if (frames.length === 0) flush(false);
    if (pending.text !== '') schedule();
  };
  return {
    onText: (delta) => take('text', delta),
    onThought: (delta) => take('thought', delta),
    end: (whole) => {
      flush(true);
      if (whole && frames.length === 0) {
        take('thought', whole.thought);
        take('text', whole.text);
        flush(true);
      }
      ended = true;
      if (scheduled) clearImmediate(scheduled);
      scheduled = null;
      return { ...kept, frames };
    },
  };
};
