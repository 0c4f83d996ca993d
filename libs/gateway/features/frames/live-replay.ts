import { LiveFrame } from '@antiphon/contracts/agent';

/**
 * Parses a live frame. Returns undefined for any other text; the log has every frame that counts.
 */
export const parseLive = (text: string): LiveFrame | undefined => {
  try {
    return LiveFrame.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
};

/** Reads the messages of one session in `LIVE` from a time on (ms), oldest first. */
export type ReadLive = (since: number, each: (text: string) => void) => Promise<void>;

interface Replay {
  after: number;
  since: number;
  readonly frames: Promise<readonly LiveFrame[]>;
}

/**
 * Replays one session's `LIVE` frames to all its readers, with one read at a time. A call during a
 * read waits for the next read, which covers frames that came since, and shares it with all calls
 * until it starts. Readers of a busy session call at the same time, and each read returns seconds
 * of frames. Only frames that a reader lacks are held in memory.
 */
export class LiveReplay {
  readonly #read: ReadLive;
  #last: Promise<unknown> = Promise.resolve();
  #next: Replay | null = null;

  constructor(read: ReadLive) {
    this.#read = read;
  }

  /**
   * Returns frames with an offset above `after` of the attempt that began at `since` (ms), in
   * order.
   */
  async framesAfter(after: number, since: number): Promise<readonly LiveFrame[]> {
    const replay = (this.#next ??= this.#schedule(after, since));
    replay.after = Math.min(replay.after, after);
    replay.since = Math.min(replay.since, since);
    const frames = await replay.frames;
    return frames.filter((frame) => frame.offset > after);
  }

  #schedule(after: number, since: number): Replay {
    const frames = this.#last.then(() => {
      const requested = this.#next ?? { after, since };
      this.#next = null;
      return this.#collect(requested.after, requested.since);
    });
    this.#last = frames.catch(() => undefined);
    return { after, since, frames };
  }

  async #collect(after: number, since: number): Promise<LiveFrame[]> {
    const frames: LiveFrame[] = [];
    await this.#read(since, (text) => {
      const frame = parseLive(text);
      if (frame && frame.offset > after) frames.push(frame);
    });
    return frames.sort((a, b) => a.offset - b.offset);
  }
}
