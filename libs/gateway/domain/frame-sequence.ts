import type { Frame, LiveFrame } from '@antiphon/contracts/agent';

/** Position of a reader in a session's frames. */
export interface FrameSequence {
  /** Offset of the last delivered frame. */
  readonly last: number;
  /** Highest epoch seen. Frames of a lower epoch come from a driver that lost its lease. */
  readonly epoch: number;
}

export type FrameVerdict = 'deliver' | 'drop' | 'gap';

export const sequenceFrom = (after: number): FrameSequence => ({ last: after, epoch: 0 });

/**
 * Decides on a live frame: deliver it, drop it as seen or stale, or fill a gap from the log first.
 */
export const judgeFrame = (at: FrameSequence, frame: LiveFrame): FrameVerdict => {
  if (frame.epoch < at.epoch || frame.offset <= at.last) return 'drop';
  return frame.prev <= at.last ? 'deliver' : 'gap';
};

/** Returns the sequence after a frame was delivered. Frames from the log carry no epoch. */
export const advance = (at: FrameSequence, frame: Frame | LiveFrame): FrameSequence => ({
  last: Math.max(at.last, frame.offset),
  epoch: Math.max(at.epoch, 'epoch' in frame ? frame.epoch : 0),
});
