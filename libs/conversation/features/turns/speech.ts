import type { Frame } from '@antiphon/contracts/agent';
import { isoTime } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';

/** Time between two notifications of one speech, ms. A gateway may have missed the first. */
const REPEAT_MS = 1_000;

/** Speech of one model call: begins with the first text of the answer. */
export class Speech {
  private beganAt: string | undefined;
  private announcedAt = -Infinity;

  /** `announce` is called at the first text, and at most each second while text follows. */
  constructor(
    private readonly clock: Clock,
    private readonly announce: (at: string) => void,
  ) {}

  /** Time of the first text; undefined before. */
  get firstTextAt(): string | undefined {
    return this.beganAt;
  }

  /** Observes frames that are sent ahead of their event. */
  observe(frames: readonly Frame[]): void {
    if (!frames.some(({ event }) => event === 'text')) return;
    const now = this.clock.now();
    this.beganAt ??= isoTime(this.clock);
    if (now - this.announcedAt < REPEAT_MS) return;
    this.announcedAt = now;
    this.announce(this.beganAt);
  }
}
