import type { Frame } from '@antiphon/contracts/agent';

/** Lets each frame of a session out once: text goes ahead of its event, whose fold gives the same frames again. */
export interface FrameSender {
  send(frames: readonly Frame[]): void;
  /** What came before this process has the session was sent by others, or is read from the log. */
  startAfter(offset: number): void;
}

export const createFrameSender = (out: (frames: readonly Frame[]) => void): FrameSender => {
  let sentUpTo = 0;
  return {
    send: (frames) => {
      const fresh = frames.filter(({ offset }) => offset > sentUpTo);
      if (fresh.length > 0) out(fresh);
      sentUpTo = Math.max(sentUpTo, fresh.at(-1)?.offset ?? 0);
    },
    startAfter: (offset) => void (sentUpTo = offset),
  };
};
