import type { LiveFrame } from '@antiphon/contracts/agent';
import { nextEventLoopRound } from '@antiphon/kernel';

/** Follower of a session, whose reader gets its live frames. */
export interface FrameTarget {
  readonly reader: { push(frame: LiveFrame): void };
}

/** Readers that get a frame without a pause: writing to their sockets takes milliseconds. */
const SLICE = 32;
/** Maximum number of frames that wait. Readers find a further one in the log. */
const MAX_WAITING = 256;

const pushInSlices = async (frame: LiveFrame, targets: readonly FrameTarget[]): Promise<void> => {
  for (let from = 0; from < targets.length; from += SLICE) {
    for (const { reader } of targets.slice(from, from + SLICE)) reader.push(frame);
    await nextEventLoopRound();
  }
};

/**
 * Sends live frames of one session to its readers. With many readers it pauses after each slice, so
 * that a popular session does not stop the process for others.
 */
export class FanOut {
  readonly #targets: ReadonlySet<FrameTarget>;
  readonly #waiting: LiveFrame[] = [];
  #isBusy = false;

  constructor(targets: ReadonlySet<FrameTarget>) {
    this.#targets = targets;
  }

  /** True while readers still lack a frame that was sent. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Sends a frame to each reader, after the frames before it. */
  send(frame: LiveFrame): void {
    if (this.#isBusy) {
      if (this.#waiting.length < MAX_WAITING) this.#waiting.push(frame);
      return;
    }
    if (this.#targets.size <= SLICE) for (const { reader } of this.#targets) reader.push(frame);
    else void this.#sendInSlices(frame);
  }

  async #sendInSlices(first: LiveFrame): Promise<void> {
    this.#isBusy = true;
    try {
      for (let frame: LiveFrame | undefined = first; frame; frame = this.#waiting.shift())
        await pushInSlices(frame, [...this.#targets]);
    } finally {
      this.#isBusy = false;
    }
  }
}
