import { LiveFrame } from '@antiphon/contracts/agent';

/** What `LIVE` still has of one session, for all its readers. */
export interface LiveRecalls {
  /** Frames with an offset above `after` of the attempt at work, which began at `since` (ms), in order. */
  after(after: number, since: number): Promise<readonly LiveFrame[]>;
}

/** Undefined: not a frame of ours. Nothing is to be delivered then, and the log has what counts. */
export const parseLive = (text: string): LiveFrame | undefined => {
  try {
    return LiveFrame.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
};

interface Recall {
  after: number;
  since: number;
  readonly frames: Promise<readonly LiveFrame[]>;
}

/**
 * One look into `LIVE` at a time. Who asks during one waits for the next, which may have what came meanwhile, and shares
 * it with all who ask until it begins: readers of a busy session ask all at once, and each look brings seconds of it.
 * Of what comes, only frames that somebody lacks are kept.
 */
export const createLiveRecalls = (
  recall: (since: number, each: (text: string) => void) => Promise<void>,
): LiveRecalls => {
  let under: Promise<unknown> = Promise.resolve();
  let next: Recall | null = null;

  const look = async ({ after, since }: Pick<Recall, 'after' | 'since'>): Promise<LiveFrame[]> => {
    const frames: LiveFrame[] = [];
    await recall(since, (text) => {
      const frame = parseLive(text);
      if (frame && frame.offset > after) frames.push(frame);
    });
    return frames.sort((a, b) => a.offset - b.offset);
  };
  const begin = (after: number, since: number): Recall => {
    const frames = under.then(() => {
      const asked = next ?? { after, since };
      next = null;
      return look(asked);
    });
    under = frames.catch(() => undefined);
    return { after, since, frames };
  };

  return {
    after: async (after, since) => {
      next ??= begin(after, since);
      next.after = Math.min(next.after, after);
      next.since = Math.min(next.since, since);
      const frames = await next.frames;
      return frames.filter((frame) => frame.offset > after);
    },
  };
};
