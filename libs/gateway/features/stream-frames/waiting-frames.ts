import type { LiveFrame } from '@antiphon/contracts/agent';

/** Live frames that wait while a gap is being filled. What does not fit is let go: the log or `LIVE` has it. */
export interface WaitingFrames {
  add(frame: LiveFrame): void;
  isEmpty(): boolean;
  /** All of them, in the order of their offsets; none wait any more. */
  take(): readonly LiveFrame[];
  /** Whether one was let go since this was asked last. */
  lost(): boolean;
}

const MAX_FRAMES = 4_096;
/** In characters of their data as JSON: a tool's result may have many. */
const MAX_CHARS = 1024 * 1024;

const charsOf = ({ data }: LiveFrame): number =>
  typeof data === 'string' ? data.length : JSON.stringify(data).length;

export const createWaitingFrames = (): WaitingFrames => {
  let frames: LiveFrame[] = [];
  let chars = 0;
  let lost = false;
  return {
    add: (frame) => {
      const size = charsOf(frame);
      // Once one was let go, those behind it would only wait for it.
      lost ||= frames.length >= MAX_FRAMES || chars + size > MAX_CHARS;
      if (lost) return;
      frames.push(frame);
      chars += size;
    },
    isEmpty: () => frames.length === 0,
    take: () => {
      const taken = frames.sort((a, b) => a.offset - b.offset);
      frames = [];
      chars = 0;
      return taken;
    },
    lost: () => {
      const was = lost;
      lost = false;
      return was;
    },
  };
};
